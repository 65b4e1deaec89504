package offsetfile

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParse: no panic, memory by the size of the file, and what is accepted means the same when it is
// written again as Kafka Streams writes it.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../../migration/testdata/malformed/*/.checkpoint")
	if err != nil || len(files) == 0 {
		f.Fatal(err, len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("0\n2147483647\na 0 1\n"))
	f.Add([]byte("0\n1\n" + strings.Repeat("a ", 1000)))
	f.Fuzz(func(t *testing.T, text []byte) {
		before := allocated()
		got, err := Parse(bytes.NewReader(text))
		// A line has 6 bytes and more, and becomes an entry, a key of the map, and a part of what they
		// grew from. The runtime itself allocates a little now and then.
		if used, most := allocated()-before, 1<<20+100*uint64(len(text)); used > most {
			t.Fatalf("%d bytes allocated for a file of %d", used, len(text))
		}
		if err != nil {
			if len(got.Entries)+len(got.Skipped) > 0 || err.Error() == "" || len(err.Error()) > 1000 {
				t.Fatalf("beside %d entries the error %v", len(got.Entries), err)
			}
			return
		}
		if !utf8.Valid(text) {
			t.Fatal("accepted what is not UTF-8")
		}
		all := slices.Concat(got.Entries, got.Skipped)
		if 6*len(all) > len(text) {
			t.Fatalf("%d entries of %d bytes", len(all), len(text))
		}
		for _, l := range got.Entries {
			if l.Partition < 0 || l.Offset < 0 && l.Offset != Unknown || l.Topic == "" {
				t.Fatalf("accepted %+v", l)
			}
		}
		again, err := Parse(strings.NewReader(Format(all...)))
		if err != nil || !slices.Equal(again.Entries, got.Entries) || !slices.Equal(again.Skipped, got.Skipped) {
			t.Fatalf("%q is read as %+v (%v), not %+v", Format(all...), again, err, got)
		}
	})
}

// allocated is what the process has allocated since it began.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
