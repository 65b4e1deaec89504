package statestore

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// placesSpecs are the stores of the directories that are damaged: ids 1 to 7.
func placesSpecs(t *testing.T) []Spec {
	own := func(name string, manages bool) StateStore {
		f, err := openFileStore(vfs.NewMem(), "own/"+name, manages)
		must(t, err)
		return f
	}
	return []Spec{
		{Name: "window", Kind: KindWindow, Changelog: "c-window", Retention: 100 * time.Second, WindowSize: time.Second},
		{Name: "session", Kind: KindSession, Changelog: "c-session", Retention: 100 * time.Second},
		{Name: "versions", Kind: KindVersioned, Changelog: "c-versions", Retention: 5 * time.Second},
		{Name: "own", Kind: KindKeyValue, Changelog: "c-own", Store: own("own", true)},
		{Name: "wrapped", Kind: KindKeyValue, Changelog: "c-wrapped", Store: own("wrapped", false)},
		{Name: "memory", Kind: KindKeyValue, Changelog: "c-memory", InMemory: true},
		{Name: "duplicates", Kind: KindWindow, Changelog: "c-duplicates", Retention: 100 * time.Second, WindowSize: time.Second, RetainDuplicates: true},
	}
}

// placesDir makes a task store with rows in all of them. Segments are 60 s long, those of versions 2 s.
func placesDir(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "0_0")
	s := openStore(t, dir, Options{Logger: quiet()}, placesSpecs(t)...)
	for _, name := range []string{"window", "duplicates"} {
		w, err := s.Window(name)
		must(t, err)
		must(t, w.Put([]byte("k"), []byte("v"), 200_000, 1))
	}
	x, err := s.Session("session")
	must(t, err)
	must(t, x.Put([]byte("k"), []byte("v"), 150_000, 200_000, 1))
	v, err := s.Versioned("versions")
	must(t, err)
	for _, at := range []int64{8_000, 9_000, 9_500, 10_000} {
		_, err = v.Put([]byte("k"), []byte("v"), at)
		must(t, err)
	}
	_, err = v.Put([]byte("gone"), nil, 9_000)
	must(t, err)
	must(t, handle(t, s, "own").Put([]byte("k"), []byte("v"), 1))
	must(t, handle(t, s, "wrapped").Put([]byte("k"), []byte("v"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"own": At(1), "wrapped": At(1)})
	must(t, s.Close())
	return dir
}

// placesRow gives a database key: numbers have 8 bytes, but for the store's id and a sequence.
func placesRow(id uint32, parts ...any) []byte {
	b := binary.BigEndian.AppendUint32([]byte{spaceData}, id)
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = binary.BigEndian.AppendUint64(b, uint64(p))
		case uint32:
			b = binary.BigEndian.AppendUint32(b, p)
		case string:
			b = append(b, p...)
		}
	}
	return b
}

func versionValue(from uint64, rest string) string {
	return string(binary.BigEndian.AppendUint64(nil, from)) + rest
}

func TestVerifyComparesRowsWithMetadata(t *testing.T) {
	for _, test := range []struct {
		name  string
		key   []byte
		value string
		want  string
	}{
		{"window in another segment", placesRow(1, 2, "k", 200_001, uint32(0)), "v", `store "window": row in the segment of another time: 1 rows`},
		{"window later than the stream time", placesRow(1, 3, "k", 200_001, uint32(0)), "v", `store "window": row later than the stream time: 1 rows`},
		{"window that has expired", placesRow(1, 0, "k", 5, uint32(0)), "v", expiredRow},
		{"window with a sequence", placesRow(1, 3, "k", 199_000, uint32(7)), "v", `store "window": row sequence in a store that does not retain duplicates`},
		{"duplicate with a sequence", placesRow(7, 3, "k", 199_000, uint32(7)), "v", ""},
		{"window as it should be", placesRow(1, 3, "k", 199_000, uint32(0)), "v", ""},
		{"session in another segment", placesRow(2, 2, "k", 200_000, 199_000), "v", `store "session": row in the segment of another time`},
		{"session later than the stream time", placesRow(2, 5, "k", 300_000, 1), "v", `store "session": row later than the stream time`},
		{"session that has expired", placesRow(2, 0, "k", 5, 1), "v", expiredRow},
		{"row of a store of the program's own", placesRow(4, "k"), "v", `store "own" is kept in a store of the program's own, and has 1 rows here`},
		{"row of a store in memory", placesRow(6, "k"), "v", `store "memory" is kept in memory, and has 1 rows here`},
		{"version over two others", placesRow(3, 4, "k", 9_900), versionValue(8_500, "\x01a"), `store "versions": row overlapping another version of its key`},
		{"version behind the newest one", placesRow(3, 5, "k", 10_000), versionValue(9_600, "\x01a"), ""},
		{"newest version before others", placesRow(3, -1, "k"), versionValue(9_200, "v"), `store "versions": row overlapping another version of its key`},
		{"version over another segment's", placesRow(3, 5, "k", 10_000), versionValue(7_000, "\x01a"), `store "versions": row overlapping another version of its key`},
		{"version of another key", placesRow(3, 5, "j", 10_000), versionValue(7_000, "\x01a"), ""},
		{"version later than the stream time", placesRow(3, 5, "j", 10_001), versionValue(7_000, "\x01a"), `store "versions": row later than the stream time`},
		{"newest version later than the stream time", placesRow(3, -1, "j"), versionValue(10_001, "a"), `store "versions": row later than the stream time`},
		{"version in another segment", placesRow(3, 5, "j", 9_000), versionValue(7_000, "\x01a"), `store "versions": row in the segment of another time`},
		{"version that has expired", placesRow(3, 1, "j", 2_000), versionValue(1_000, "\x01a"), expiredRow},
		{"expired version over another", placesRow(3, 1, "k", 2_001), versionValue(1_000, "\x01a"), expiredRow},
		{"expired window in another segment", placesRow(1, 0, "k", 60_000, uint32(0)), "v", `store "window": row in the segment of another time`},
		{"logged version", placesRow(3, -2, "\x00\x00\x00\x00\x00\x00\x00\x05key67890"), versionValue(5, "\x01a"), `store "versions"`},
		{"schema change of no store", append([]byte{spaceMeta, 'm'}, 0, 0, 0, 99), "x", "schema change of store 99, which is not in the catalog"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := placesDir(t)
			setRaw(t, dir, test.key, []byte(test.value))
			if test.want == expiredRow {
				wantProblem(t, dir, "")
				wantExpired(t, dir, 1)
				return
			}
			wantProblem(t, dir, test.want)
		})
	}
}

func TestVerifyReadsCheckpoints(t *testing.T) {
	dir := placesDir(t)
	file := filepath.Join(dir, ".checkpoint_wrapped")
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{
		"0\n1\nc-wrapped 0 0\n":                  "",
		"0\n1\nc-wrapped 0 -4\n":                 "",
		"0\n1\nc-wrapped 0\n":                    file,
		"":                                       file,
		"0\n1\nc-another 0 0\n":                  "", // as a crash behind an Adopt leaves it
		"0\n2\nc-wrapped 0 0\nc-another 0 0\n":   "", // those of others do no harm
		"1\n1\nc-wrapped 0 0\n":                  file,
		"0\n1\nc-wrapped 0 -77\n":                "", // Kafka Streams ignores it too
		"0\n1\nc-wrapped 0 99999999999999999999": file,
	} {
		must(t, os.WriteFile(file, []byte(content), 0o600))
		wantProblem(t, dir, want)
	}
	must(t, os.Remove(file))
	wantProblem(t, dir, "") // as after a crash: it is restored from the start
}

// expiredRow: what a program that shortened the retention has left is no problem. No read shows it, and the next
// commit removes it.
const expiredRow = "expired"

// wantExpired wants that many rows in the directory that have expired.
func wantExpired(t *testing.T, dir string, want int64) {
	t.Helper()
	v := readOnly(t, dir, ReadOptions{})
	defer func() { must(t, v.Close()) }()
	found, err := v.Verify(t.Context())
	must(t, err)
	n := int64(0)
	for _, st := range found.Stores {
		n += st.Expired
	}
	if n != want {
		t.Errorf("%d rows have expired; want %d", n, want)
	}
}

// wantProblem wants one problem, or with "" none.
func wantProblem(t *testing.T, dir, want string) {
	t.Helper()
	v := readOnly(t, dir, ReadOptions{})
	defer func() { must(t, v.Close()) }()
	found, err := v.Verify(t.Context())
	must(t, err)
	switch {
	case want == "" && len(found.Problems) > 0:
		t.Errorf("problems %q", found.Problems)
	case want != "" && (len(found.Problems) != 1 || !strings.Contains(found.Problems[0], want)):
		t.Errorf("problems %q; want one: %q", found.Problems, want)
	}
}

// TestShorterRetention: what has expired by it leaves the database with the record of it, so
// that data and metadata agree before the first commit too.
func TestShorterRetention(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "0_0")
	window := Spec{Name: "window", Kind: KindWindow, Changelog: "c", Retention: 10 * time.Minute, WindowSize: time.Second}
	versions := Spec{Name: "versions", Kind: KindVersioned, Changelog: "v", Retention: 10 * time.Minute}
	s := openStore(t, dir, Options{Logger: quiet()}, window, versions)
	w, err := s.Window("window")
	must(t, err)
	v, err := s.Versioned("versions")
	must(t, err)
	for at := int64(0); at <= 600_000; at += 60_000 {
		must(t, w.Put([]byte("k"), []byte("v"), at, 1))
		_, err := v.Put([]byte("k"), []byte("v"), at)
		must(t, err)
	}
	commit(t, s, Progress{ID: CommitID{1, 1}}, nil)
	must(t, s.Close())
	wantProblem(t, dir, "")

	window.Retention, versions.Retention = time.Minute, time.Minute
	s = openStore(t, dir, Options{Logger: quiet()}, window, versions)
	must(t, s.Close())
	wantProblem(t, dir, "")
	wantExpired(t, dir, 0)
	view := readOnly(t, dir, ReadOptions{})
	for _, name := range []string{"window", "versions"} {
		size, err := view.Size(name)
		must(t, err)
		if size.Rows == 0 || size.Rows > 8 {
			t.Errorf("%s has %d rows left of 11", name, size.Rows)
		}
	}
}
