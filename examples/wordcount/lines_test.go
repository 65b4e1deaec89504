package main

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                         nil,
		" \t ":                     nil,
		"The the THE":              {"the", "the", "the"},
		"a1-b2_c3":                 {"a1", "b2", "c3"},
		"naïve":                    {"na", "ve"},
		"\u212Aelvin":              {"elvin"}, // the Kelvin sign is no letter of ASCII, though its lower case is
		"bad\xff\xfebytes\x00here": {"bad", "bytes", "here"},
	} {
		if got := words(line); !slices.Equal(got, want) {
			t.Errorf("words(%q) = %q, want %q", line, got, want)
		}
	}
}

// readLines reads all lines, through a reader that gives one byte at a time.
func readLines(t *testing.T, text string) (lines []string, rest string) {
	t.Helper()
	var slow, fast [][]byte
	for _, r := range []struct {
		in   io.Reader
		into *[][]byte
	}{{iotest.OneByteReader(strings.NewReader(text)), &slow}, {strings.NewReader(text), &fast}} {
		l := newLineReader(r.in)
		for {
			line, err := l.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			*r.into = append(*r.into, bytes.Clone(line))
		}
		*r.into = append(*r.into, bytes.Clone(l.rest()))
	}
	if !slices.EqualFunc(slow, fast, bytes.Equal) {
		t.Fatal("the lines depend on how the bytes arrive")
	}
	for _, line := range fast[:len(fast)-1] {
		lines = append(lines, string(line))
	}
	return lines, string(fast[len(fast)-1])
}

func TestLines(t *testing.T) {
	long := strings.Repeat("word ", maxLine) // five times too long
	for _, test := range []struct {
		text, rest string
		lines      int
	}{{"", "", 0}, {"a", "a", 0}, {"a\n", "", 1}, {"\n\n", "", 2}, {"a\nb", "b", 1}, {"a\r\nb\r\n", "", 2}, {long + "\nend\n", "", 7}} {
		lines, rest := readLines(t, test.text)
		if len(lines) != test.lines || rest != test.rest {
			t.Errorf("%.20q: %d lines and rest %q, want %d and %q", test.text, len(lines), rest, test.lines, test.rest)
		}
		var got []string
		for _, line := range append(lines, rest) {
			got = append(got, words(line)...)
			if len(line) > maxLine {
				t.Errorf("%.20q: a line of %d bytes", test.text, len(line))
			}
		}
		if want := words(test.text); !slices.Equal(got, want) {
			t.Errorf("%.20q: the lines have %d words, the text %d", test.text, len(got), len(want))
		}
	}
	if _, err := newLineReader(strings.NewReader(strings.Repeat("x", 2*maxLine))).next(); err == nil || !strings.Contains(err.Error(), "no text") {
		t.Errorf("a word without end: %v", err)
	}
}

// A line that is not whole yet stays until it is.
func TestLinesOfAGrowingFile(t *testing.T) {
	var file bytes.Buffer
	l := newLineReader(&file)
	for _, step := range []struct{ appended, line string }{{"on", ""}, {"e\ntw", "one"}, {"o", ""}, {"\n", "two"}} {
		file.WriteString(step.appended)
		line, err := l.next()
		if string(line) != step.line || (err == nil) != (step.line != "") {
			t.Errorf("after %q: %q, %v", step.appended, line, err)
		}
	}
}
