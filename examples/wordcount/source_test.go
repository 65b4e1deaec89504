package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func identify(t *testing.T, text string, follow bool, known ...content) source {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openSource(name, map[string][]content{name: known, "another": {{sha: "x", size: 1}}}, follow)
	if err != nil {
		t.Fatal(err)
	}
	if s.follows == name {
		s.follows = "itself"
	}
	return s
}

func TestSourceIsKnownByItsContent(t *testing.T) {
	one := identify(t, "a\nb\n", false)
	if one.size != 4 || one.lines != 2 || one.end != 4 || len(one.sha) != 64 {
		t.Fatalf("%+v", one)
	}
	two := identify(t, "a\nb\nc\n", false)
	open := identify(t, "a\nb", false) // its last line has no end
	other := identify(t, "x\ny\n", false)
	empty := identify(t, "", false)
	for _, test := range []struct {
		name, text string
		follow     bool
		known      []content
		want       content
	}{
		{"unknown", "a\nb\n", false, []content{other.content, two.content}, one.content},
		{"the same", "a\nb\n", false, []content{one.content}, one.content},
		{"grown", "a\nb\nc\nd", false, []content{other.content, one.content, empty.content}, one.content},
		{"the longest beginning", "a\nb\nc\nd", false, []content{two.content, one.content}, two.content},
		{"the last line has grown", "a\nbb", false, []content{open.content}, identify(t, "a\nbb", false).content},
		{"followed again", "a\nb\nc", true, []content{followed(one.content)}, followed(one.content)},
		{"followed up to its last whole line", "a\nb\nun", true, nil, followed(one.content)},
		{"nothing to follow yet", "un", true, nil, followed(empty.content)},
	} {
		if got := identify(t, test.text, test.follow, test.known...); got.content != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got.content, test.want)
		}
	}
}

func followed(c content) content {
	c.follows = "itself"
	return c
}

func TestEndOfWholeLines(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for text, want := range map[string]int64{"": 0, "a": 0, "a\n": 2, "a\nb": 2, long: 0, "a\n" + long: 2, long + "\n" + long: 100_001} {
		if s := identify(t, text, true); s.end != want {
			t.Errorf("%.10q of %d bytes: end %d, want %d", text, len(text), s.end, want)
		}
	}
}

func TestUnitHeader(t *testing.T) {
	u := unit{content{"abc", 12, "a \"file\""}, 3}
	if got, err := parseUnit(u.String()); err != nil || got != u {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseUnit("abc"); err == nil {
		t.Error("a damaged header is taken")
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
}
