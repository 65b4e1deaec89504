package offsetfile

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestMillionLines(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("0\n1000000\n")
	for i := range 1000000 {
		fmt.Fprintf(&b, "app-kv-changelog %d %d\n", i, i)
	}
	f, err := Parse(&b)
	if err != nil || len(f.Entries) != 1000000 {
		t.Fatalf("%d entries, %v", len(f.Entries), err)
	}
}

func TestTooLarge(t *testing.T) {
	zeros := bytes.NewReader(make([]byte, maxBytes+1))
	if _, err := Parse(zeros); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Error(err)
	}
}

// Forms beside those of testdata: what Kafka Streams would read, and what it would not.
func TestForms(t *testing.T) {
	for text, entries := range map[string]int{ // -1 = refused
		"0\n1\nt 0 1":                      1,
		"0\n1\nt 0 1\n\n":                  -1, // a blank line is an entry without fields
		"0\n1\n\nt 0 1\n":                  -1,
		"0\n0\n\n":                         -1,
		"0\n0":                             0,
		"0\r\n0\r\n":                       0,
		"0\n\n":                            -1,
		"\n0\n0\n":                         -1,
		"0\n1\n\tt 0 1\n":                  -1,
		"0\n1\nt 0 1\t\t\n":                1,
		"0\n1\nt\t\t0  1\n":                1,
		"0\n1\nt 0\n":                      -1,
		"0\n1\nt 0 1 2\n":                  -1,
		"0\n1\nt 0 0x10\n":                 -1,
		"0\n1\nt 0 1e3\n":                  -1,
		"0\n1\nt 0 1,000\n":                -1,
		"0\n1\nt 0x1 1\n":                  -1,
		"0\n1\nt 0 +\n":                    -1,
		"0\n1\nt 0 --1\n":                  -1,
		"0\n1\nt 00 007\n":                 1,
		"00\n01\nt 0 1\n":                  1,
		"-0\n1\nt 0 1\n":                   1, // Java reads -0 as 0
		"-1\n1\nt 0 1\n":                   -1,
		"0\n1 \nt 0 1\n":                   -1, // parseInt takes no white space
		"0\n\t1\nt 0 1\n":                  -1,
		"0\n4294967297\nt 0 1\n":           -1,
		"4294967296\n1\nt 0 1\n":           -1,
		"0\n1\nt 4294967296 1\n":           -1,
		"0\n2\nt 0 1\nt 0 1\n":             -1,
		"0\n2\nt 0 1\nt 00 2\n":            -1, // the same partition
		"0\n2\nt 0 1\nT 0 1\n":             2,
		"0\n3\nt 0 1\nt 1 -2\nu 0 -4":      2,
		"0\n1\nt 0 -4\n":                   1,
		"0\n1\nt 0 -9223372036854775808\n": 0,
		"0\n1\nt 0 -9223372036854775809\n": -1,
		"0\n1\nt\u00850 1\n":               -1, // no space to Java's \s
		"0\n1\nt 0 1\x00\n":                -1,
		"0\n1\nt 0 1\n\x00\x00\x00":        -1,
		"0\n1\nt 0 1\u2028":                -1,
		"\x00\n":                           -1,
		"0":                                -1,
		"":                                 -1,
		"\n":                               -1,
	} {
		f, err := Parse(strings.NewReader(text))
		got := len(f.Entries)
		if err != nil {
			got = -1
		}
		if got != entries {
			t.Errorf("%q: %d entries, %v; want %d", text, got, err, entries)
		}
	}
}
