package migration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/journal"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"

	"github.com/tidemark-streams/tidemark/statestore"
)

// gokaTableAt makes a local storage as goka does: one LevelDB, a Put for each update and one for
// the offset behind it. offset "" = none was ever written. With flush everything lies in tables.
func gokaTableAt(t *testing.T, dir string, entries int, offset string, flush bool) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(dir), 0o700))
	db, err := leveldb.OpenFile(dir, nil)
	must(t, err)
	for i := range entries {
		must(t, db.Put(legacyKey(i), []byte("an older value"), nil))
		must(t, db.Put(legacyKey(i), legacyValue(i), nil))
		if offset != "" {
			must(t, db.Put([]byte(gokaOffsetKey), []byte(fmt.Sprint(i)), nil))
		}
	}
	must(t, db.Put([]byte("zz deleted"), []byte("x"), nil))
	must(t, db.Delete([]byte("zz deleted"), nil))
	if offset != "" {
		must(t, db.Put([]byte(gokaOffsetKey), []byte(offset), nil))
	}
	if flush {
		must(t, db.CompactRange(util.Range{}))
	}
	must(t, db.Close())
}

func gokaTask(t *testing.T, stateDir string, partition, entries int, flush bool) (task string) {
	t.Helper()
	task = filepath.Join(stateDir, "app", fmt.Sprintf("0_%d", partition))
	gokaTableAt(t, filepath.Join(task, "goka", fmt.Sprintf("app-counts-changelog.%d", partition)), entries, "99", flush)
	return task
}

func wantGoka(partition, entries int) content {
	return content{Offsets: map[string]string{"counts": "at 100"}, Rows: map[string]int{"counts": entries},
		Imports: []string{fmt.Sprintf("counts from goka/app-counts-changelog.%d", partition)}}
}

func TestGoka(t *testing.T) {
	for _, flush := range []bool{false, true} {
		dir := t.TempDir()
		task := gokaTask(t, dir, 3, 2000, flush)
		table := filepath.Join(task, "goka", "app-counts-changelog.3")
		before := filesOf(t, dir)
		planned, err := Plan(t.Context(), dir, Options{})
		must(t, err)
		if diff := cmp.Diff(before, filesOf(t, dir)); diff != "" {
			t.Errorf("Plan wrote (-before +after):\n%s", diff)
		}
		e := entryOf(t, planned, "0_3", "app-counts-changelog", 3)
		if !planned.OK || e.Store != "counts" || e.Action != ActionMigrate || e.State != StateAt || *e.Raw != 99 || *e.NextOffset != 100 {
			t.Errorf("ok %v, %+v", planned.OK, e)
		}
		if legacy, err := HasLegacy(task); err != nil || !legacy {
			t.Errorf("legacy: %v, %v", legacy, err)
		}
		for range 2 {
			r, err := Apply(t.Context(), dir, Options{Logger: quiet})
			if err != nil || !r.OK {
				t.Fatalf("%v, %+v", err, r)
			}
		}
		if diff := cmp.Diff(wantGoka(3, 2000), contentOf(t, task)); diff != "" {
			t.Errorf("flush %v (-want +got):\n%s", flush, diff)
		}
		if exists(t, table) || !exists(t, table+migratedSuffix) {
			t.Error("the database was not renamed")
		}
		must(t, Sweep(task))
		if exists(t, filepath.Join(task, "goka")) {
			t.Error("the folder is still there")
		}
		if legacy, err := HasLegacy(task); err != nil || legacy {
			t.Errorf("legacy afterwards: %v, %v", legacy, err)
		}
	}
}

// filesOf gives the files below dir with size and time.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			files[path] = fmt.Sprint(info.Size(), info.ModTime())
		}
		return err
	}))
	return files
}

func TestGokaNames(t *testing.T) {
	tests := []struct {
		name, folder string
		o            Options
		want         string
	}{
		{"group-table.0", "goka", Options{Map: map[string][]string{"group-table": {"t"}}}, "group-table 0 t at 8 migrate"},
		{"group-table.0", "goka", Options{Map: map[string][]string{"group-table": {"t", "u"}}}, "group-table 0 t at 8 migrate; group-table 0 u at 8 migrate"},
		{"group-table.0", "goka", Options{Specs: map[string]statestore.Spec{"t": {Changelog: "group-table"}}}, "group-table 0 t at 8 migrate"},
		{"group-table.0", "group-table", Options{Map: map[string][]string{"group-table": {"t"}}}, "group-table 0 t at 8 migrate"}, // like a segment
		{"counts", "goka", Options{}, "app-counts-changelog 0 counts at 8 migrate"},
		{"group-table.0", "goka", Options{}, "group-table 0  at 8 none !"},
		{"app-counts-changelog.1", "goka", Options{}, "app-counts-changelog 1  at 8 none !"},
		{"group-table.0", "goka", Options{Map: map[string][]string{"group-table": {"t"}},
			Specs: map[string]statestore.Spec{"t": {Changelog: "app-t-changelog"}}}, "group-table 0 t at 8 restore"},
		{"counts", "goka", Options{Specs: map[string]statestore.Spec{"counts": {Kind: statestore.KindTimestampedKeyValue}}},
			"app-counts-changelog 0 counts at 8 restore"},
	}
	for _, test := range tests {
		dir := t.TempDir()
		task := filepath.Join(dir, "app", "0_0")
		gokaTableAt(t, filepath.Join(task, test.folder, test.name), 3, "7", false)
		test.o.Logger = quiet
		test.o.App = "app"
		r, err := Apply(t.Context(), dir, test.o)
		must(t, err)
		if got := gokaEntries(r); got != test.want {
			t.Errorf("%s/%s: got %q, want %q: %+v", test.folder, test.name, got, test.want, r.Tasks)
		}
		if moved := strings.Contains(test.want, "migrate"); exists(t, filepath.Join(task, test.folder, test.name)) == moved {
			t.Errorf("%s/%s: moved: %v", test.folder, test.name, !moved)
		}
	}
}

func gokaEntries(r *Report) string {
	var all []string
	for _, task := range r.Tasks {
		for _, e := range task.Entries {
			state := string(e.State)
			if e.NextOffset != nil {
				state += " " + fmt.Sprint(*e.NextOffset)
			}
			all = append(all, fmt.Sprintf("%s %d %s %s %s", e.Topic, e.Partition, e.Store, state, e.Action))
		}
	}
	text := strings.Join(all, "; ")
	if !r.OK {
		text += " !"
	}
	return text
}

// Whatever is wrong with the offset or the database: the store is restored, and nothing is
// guessed or deleted.
func TestGokaDamaged(t *testing.T) {
	tests := []struct {
		what, offset string
		flush        bool
		damage       func(t *testing.T, dir string)
		quarantined  bool
		want         string
	}{
		{"no offset", "", false, nil, false, "absent restore"},
		{"an offset of words", "many", false, nil, false, "absent restore"},
		{"too large", "9223372036854775808", false, nil, false, "absent restore"},
		{"the last one", "9223372036854775807", false, nil, false, "absent restore"},
		{"negative", "-1", false, nil, false, "absent restore"},
		{"a torn log", "7", false, func(t *testing.T, dir string) { cut(t, dir, "*.log", 5) }, true, "absent restore !"},
		{"a log with a wrong byte", "7", false, func(t *testing.T, dir string) { flip(t, dir, "*.log") }, true, "absent restore !"},
		{"a torn table", "7", true, func(t *testing.T, dir string) { cut(t, dir, "*.ldb", 5) }, true, "absent restore !"},
		{"a table with a wrong byte", "7", true, func(t *testing.T, dir string) { flip(t, dir, "*.ldb") }, true, "restore !"},
		{"no table", "7", true, func(t *testing.T, dir string) { must(t, os.Remove(one(t, dir, "*.ldb"))) }, true, "absent restore !"},
		{"no manifest", "7", false, func(t *testing.T, dir string) { must(t, os.Remove(one(t, dir, "MANIFEST-*"))) }, true, "absent restore !"},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			dir := t.TempDir()
			task := filepath.Join(dir, "app", "0_0")
			table := filepath.Join(task, "goka", "app-counts-changelog.0")
			gokaTableAt(t, table, 1000, test.offset, test.flush)
			if test.damage != nil {
				test.damage(t, table)
			}
			r, err := Apply(t.Context(), dir, Options{Logger: quiet})
			must(t, err)
			if got := gokaEntries(r); !strings.HasPrefix(got, "app-counts-changelog 0 counts ") || !strings.HasSuffix(got, test.want) {
				t.Errorf("got %q, want %q: %+v", got, test.want, r.Tasks)
			}
			kept, err := filepath.Glob(table + quarantineMarker + "*")
			must(t, err)
			if (len(kept) == 1) != test.quarantined || exists(t, table) == test.quarantined {
				t.Errorf("quarantined: %q", kept)
			}
			again, err := Apply(t.Context(), dir, Options{Logger: quiet})
			if err != nil || !again.OK {
				t.Errorf("once more: %v, %+v", err, again)
			}
		})
	}
}

func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	return found[len(found)-1]
}

func cut(t *testing.T, dir, pattern string, n int64) {
	t.Helper()
	path := one(t, dir, pattern)
	info, err := os.Stat(path)
	must(t, err)
	must(t, os.Truncate(path, info.Size()-n))
}

func flip(t *testing.T, dir, pattern string) {
	t.Helper()
	path := one(t, dir, pattern)
	content, err := os.ReadFile(path)
	must(t, err)
	content[len(content)/2] ^= 0x40
	must(t, os.WriteFile(path, content, 0o600))
}

func TestGokaInUse(t *testing.T) {
	dir := t.TempDir()
	task := gokaTask(t, dir, 0, 10, false)
	table := filepath.Join(task, "goka", "app-counts-changelog.0")
	db, err := leveldb.OpenFile(table, nil)
	must(t, err)
	r, err := Apply(t.Context(), dir, Options{Logger: quiet})
	must(t, err)
	if e := entryOf(t, r, "0_0", "app-counts-changelog", 0); r.OK || e.Action != ActionSkip || !strings.Contains(e.Reason, "stop the program") || !exists(t, table) {
		t.Errorf("ok %v, %+v", r.OK, e)
	}
	must(t, db.Close())
	r, err = Apply(t.Context(), dir, Options{Logger: quiet})
	must(t, err)
	if diff := cmp.Diff(wantGoka(0, 10), contentOf(t, task)); diff != "" || !r.OK {
		t.Errorf("ok %v (-want +got):\n%s", r.OK, diff)
	}
}

func TestGokaKill(t *testing.T) {
	for _, point := range []string{"migration-cleared", "migration-loaded", "migration-recorded", "migration-data-renamed"} {
		dir := t.TempDir()
		task := gokaTask(t, dir, 0, 300, true)
		if !runMigration(t, dir, "stores", point) {
			t.Errorf("%s is never reached", point)
		}
		if runMigration(t, dir, "stores", "") {
			t.Fatalf("%s: killed without a reason", point)
		}
		if diff := cmp.Diff(wantGoka(0, 300), contentOf(t, task)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", point, diff)
		}
		if !exists(t, filepath.Join(task, "goka", "app-counts-changelog.0"+migratedSuffix)) {
			t.Errorf("%s: the original is gone", point)
		}
	}
	dir := t.TempDir()
	task := gokaTask(t, dir, 0, 300, false)
	table := filepath.Join(task, "goka", "app-counts-changelog.0")
	cut(t, table, "*.log", 5)
	if !runMigration(t, dir, "stores", "migration-data-quarantined") || runMigration(t, dir, "stores", "") {
		t.Error("migration-data-quarantined is never reached, or always")
	}
	if kept, err := filepath.Glob(table + quarantineMarker + "*"); err != nil || len(kept) != 1 || exists(t, table) {
		t.Errorf("quarantined: %q, %v", kept, err)
	}
}

// TestGokaEveryDamage changes and cuts the files of a table at many places. Either that is
// noticed, or what was read is whole up to the offset that was read.
func TestGokaEveryDamage(t *testing.T) {
	for _, flush := range []bool{false, true} {
		whole := filepath.Join(t.TempDir(), "t.0")
		gokaTableAt(t, whole, 100, "99", flush)
		for _, pattern := range []string{"*.log", "*.ldb", "MANIFEST-*", "CURRENT"} {
			files, err := filepath.Glob(filepath.Join(whole, pattern))
			must(t, err)
			for _, path := range files {
				content, err := os.ReadFile(path)
				must(t, err)
				for n := range min(len(content), 25) {
					at := n * len(content) / 25
					changed := append([]byte(nil), content...)
					changed[min(at, len(content)-1)] ^= 0x10
					for _, damaged := range [][]byte{changed, content[:at]} {
						must(t, os.WriteFile(path, damaged, 0o600))
						checkGokaIsWhole(t, whole, fmt.Sprintf("%s, %d of %d bytes, at %d", filepath.Base(path), len(damaged), len(content), at))
					}
				}
				must(t, os.WriteFile(path, content, 0o600))
			}
		}
		checkGokaIsWhole(t, whole, "undamaged")
		if n, err := rowsOfGoka(whole); err != nil || n != 100 {
			t.Errorf("undamaged: %d rows, %v", n, err)
		}
	}
}

// A record with a right checksum and an impossible sequence number makes goleveldb panic.
func TestGokaPanics(t *testing.T) {
	dir := t.TempDir()
	task := gokaTask(t, dir, 0, 10, false)
	table := filepath.Join(task, "goka", "app-counts-changelog.0")
	f, err := os.Create(one(t, table, "*.log"))
	must(t, err)
	w := journal.NewWriter(f)
	record, err := w.Next()
	must(t, err)
	_, err = record.Write([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x00\x01\x01k\x01v"))
	must(t, err)
	must(t, errors.Join(w.Close(), f.Close()))
	for range 2 { // the lock is free again
		g := &gokaTable{}
		if _, g.cause = g.read(table); !g.damaged() || !strings.Contains(g.cause.Error(), "sequence number") {
			t.Errorf("%v", g.cause)
		}
	}
	db, err := leveldb.OpenFile(table, &opt.Options{ErrorIfExist: true})
	if !errors.Is(err, os.ErrExist) {
		t.Errorf("%v, %v", db, err)
	}
}

func checkGokaIsWhole(t *testing.T, dir, what string) {
	t.Helper()
	g := &gokaTable{}
	found, err := g.read(dir)
	if err != nil || !found {
		return
	}
	if n, err := rowsOfGoka(dir); err == nil && (g.raw == nil || int64(n) <= *g.raw) {
		t.Errorf("%s: offset %v with %d rows", what, g, n)
	}
}

// rowsOfGoka counts the entries of gokaTableAt, from the first, that are there as they were written last.
func rowsOfGoka(dir string) (n int, err error) {
	s, err := openGoka(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for row, err := range s.Rows() {
		if err != nil {
			return n, err
		}
		if string(row.Key) == string(legacyKey(n)) && string(row.Value) == string(legacyValue(n)) {
			n++
		}
	}
	return n, nil
}

func TestLookFindsGoka(t *testing.T) {
	dir := t.TempDir()
	task := gokaTask(t, dir, 0, 10, false)
	gokaTableAt(t, filepath.Join(task, "other", "names"), 3, "", false)
	gokaTableAt(t, filepath.Join(task, "other", "in.0"), 3, "2", false)
	cut(t, filepath.Join(task, "other", "in.0"), "*.log", 3)
	found, err := Look(task)
	must(t, err)
	var got []string
	for _, f := range found {
		path, err := filepath.Rel(task, f.Path)
		must(t, err)
		got = append(got, fmt.Sprintf("%s: %s %s %s", path, f.Kind, f.Engine, f.Status))
	}
	want := []string{"goka/app-counts-changelog.0: database goka ok", "other/in.0: database goka unreadable", "other/names: database LevelDB ok"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
