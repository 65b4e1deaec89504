package migration

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// shape is a state directory in the layout of Kafka Streams that no real run of testdata has.
type shape struct {
	name    string
	files   map[string]string  // path below the state directory -> content; a name that ends in / is a folder
	seconds map[string]float64 // path -> time against the task's .checkpoint
	options Options
	// entries, positions: "task store topic-partition state raw next" and "task store topic-partition raw next".
	entries, positions []string
	problems           int // files that are quarantined
	notOK              bool
}

func offsets(lines ...string) string {
	return fmt.Sprintf("0\n%d\n%s\n", len(lines), strings.Join(lines, "\n"))
}

// rocks are the files of a RocksDB database that was closed cleanly, as far as it matters.
func rocks(files map[string]string, dirs ...string) map[string]string {
	for _, d := range dirs {
		for _, f := range []string{"CURRENT", "IDENTITY", "LOCK", "LOG", "MANIFEST-000005", "OPTIONS-000007", "000008.sst", "000004.log"} {
			files[d+"/"+f] = ""
		}
	}
	return files
}

func shapes() []shape {
	const eosDir = "app/0_0/"
	clean := map[string]float64{".sst": -0.004, "MANIFEST-000005": 0.003}
	return []shape{
		{name: "window, session and key-value stores, exactly-once, closed cleanly",
			files: rocks(map[string]string{
				"app/0_0/.checkpoint":   offsets("app-win-changelog 0 629", "app-sess-changelog 0 -4", "app-kv.x_1-changelog 0 0"),
				"app/0_0/win.position":  offsets("in 0 700", "other-in 0 12", "in.2 0 0"),
				"app/0_0/sess.position": "0\n0\n",
			}, "app/0_0/win/win.0", "app/0_0/win/win.60000", "app/0_0/sess/sess.1795966500000", "app/0_0/rocksdb/kv.x_1"),
			seconds:   clean,
			entries:   []string{"0_0 kv.x_1 app-kv.x_1-changelog-0 at 0 1", "0_0 sess app-sess-changelog-0 unknown -4 none", "0_0 win app-win-changelog-0 at 629 630"},
			positions: []string{"0_0 win in-0 700 701", "0_0 win in.2-0 0 1", "0_0 win other-in-0 12 13"}},
		{name: "exactly-once, one of two stores was flushed after the file was written",
			files:   rocks(map[string]string{eosDir + ".checkpoint": offsets("app-a-changelog 0 5", "app-b-changelog 0 6")}, eosDir+"rocksdb/a", eosDir+"rocksdb/b"),
			seconds: map[string]float64{"a/000008.sst": -1, "b/000008.sst": 0.5, "MANIFEST-000005": 0.6},
			entries: []string{"0_0 a app-a-changelog-0 suspect 5 6", "0_0 b app-b-changelog-0 suspect 6 7"}},
		{name: "exactly-once, killed before anything was flushed",
			files:   rocks(map[string]string{eosDir + ".checkpoint": offsets("app-a-changelog 0 5", "app-b-changelog 0 -4")}, eosDir+"rocksdb/a", eosDir+"b/b.0"),
			seconds: map[string]float64{".sst": -6, "MANIFEST-000005": -0.3},
			entries: []string{"0_0 a app-a-changelog-0 suspect 5 6", "0_0 b app-b-changelog-0 unknown -4 none"}},
		{name: "exactly-once, a segment of a window store was flushed later",
			files:   rocks(map[string]string{eosDir + ".checkpoint": offsets("app-w-changelog 0 5")}, eosDir+"w/w.0", eosDir+"w/w.60000", eosDir+"w/w.120000"),
			seconds: map[string]float64{"w.0/000008.sst": -1, "w.60000/000008.sst": 2, "w.120000/000008.sst": -1, "MANIFEST-000005": 3},
			entries: []string{"0_0 w app-w-changelog-0 suspect 5 6"}},
		{name: "named topologies",
			files: rocks(map[string]string{
				"my.app-1/__orders.v2__/1_3/.checkpoint": offsets("my.app-1-orders.v2-kv-changelog 3 41", "my.app-1-kv-changelog 3 9"),
				"my.app-1/__bills__/1_3/.checkpoint":     offsets("my.app-1-bills-kv-changelog 3 7"),
				"my.app-1/1_3/.checkpoint":               offsets("my.app-1-kv-changelog 3 5"),
				"my.app-1/__bills__/1_3/kv.position":     offsets("in 3 70"),
			}, "my.app-1/__orders.v2__/1_3/rocksdb/kv", "my.app-1/__bills__/1_3/rocksdb/kv", "my.app-1/1_3/rocksdb/kv"),
			options: Options{Guarantee: AtLeastOnce},
			entries: []string{"1_3 kv my.app-1-kv-changelog-3 at 5 6", "bills__1_3 kv my.app-1-bills-kv-changelog-3 at 7 8",
				"orders.v2__1_3 - my.app-1-kv-changelog-3 at 9 10", "orders.v2__1_3 kv my.app-1-orders.v2-kv-changelog-3 at 41 42"},
			positions: []string{"bills__1_3 kv in-3 70 71"}},
		{name: "global stores: next offsets, any partitions, positions",
			files: rocks(map[string]string{
				"app/global/.checkpoint":     offsets("rates 0 0", "rates 11 9223372036854775807", "names 2 -4", "names 0 31", "gone 0 4"),
				"app/global/rates.position":  offsets("rates 11 40"),
				"app/global/.checkpoint_own": offsets("owned 5 12"),
			}, "app/global/rocksdb/rates", "app/global/rocksdb/names"),
			options: Options{Map: map[string][]string{"rates": {"rates"}, "names": {"names"}, "owned": {"own"}}},
			entries: []string{"global - gone-0 at 4 4", "global names names-0 at 31 31", "global names names-2 unknown -4 none", "global own owned-5 at 12 12",
				"global rates rates-0 at 0 0", "global rates rates-11 at 9223372036854775807 9223372036854775807"},
			positions: []string{"global rates rates-11 40 41"}},
		{name: "one topic is the changelog of two stores",
			files: rocks(map[string]string{"app/2_7/.checkpoint": offsets("in 7 99", "app-c-changelog 7 1")},
				"app/2_7/rocksdb/a", "app/2_7/rocksdb/b", "app/2_7/rocksdb/c"),
			options: Options{Guarantee: AtLeastOnce, Map: map[string][]string{"in": {"a", "b"}}},
			entries: []string{"2_7 a in-7 at 99 100", "2_7 b in-7 at 99 100", "2_7 c app-c-changelog-7 at 1 2"}},
		{name: "numbers at their ends, tabs, CRLF, signs, no last newline",
			files: map[string]string{"app/2147483647_2147483647/.checkpoint": fmt.Sprintf("+0\r\n+3\r\napp-a-changelog\t2147483647 \t%d\t\r\napp-b-changelog  +2147483647  +007 \r\n"+
				"app-c-changelog\v2147483647\f-0", math.MaxInt64-1)},
			options: Options{Guarantee: AtLeastOnce},
			entries: []string{"2147483647_2147483647 a app-a-changelog-2147483647 at 9223372036854775806 9223372036854775807",
				"2147483647_2147483647 b app-b-changelog-2147483647 at 7 8", "2147483647_2147483647 c app-c-changelog-2147483647 at 0 1"}},
		{name: "lines that end with a carriage return only", files: map[string]string{"app/0_0/.checkpoint": "0\r1\rapp-a-changelog 0 3\r"},
			options: Options{Guarantee: AtLeastOnce}, entries: []string{"0_0 a app-a-changelog-0 at 3 4"}},
		{name: "stores with files of their own, one that was being written",
			files: rocks(map[string]string{
				"app/0_1/.checkpoint_cust":       offsets("app-cust-changelog 1 339"),
				"app/0_1/.checkpoint_cust.tmp":   "0\n1\napp-cu",
				"app/0_1/.checkpoint_next":       offsets("app-next-changelog 1 -4"),
				"app/0_1/.checkpoint_broken":     "0\n2\napp-broken-changelog 1 4\n",
				"app/0_1/.checkpoint_x.checksum": offsets("app-x.checksum-changelog 1 0"),
			}, "app/0_1/rocksdb/kv"),
			problems: 1, notOK: true,
			entries: []string{"0_1 cust app-cust-changelog-1 at 339 340", "0_1 next app-next-changelog-1 unknown -4 none", "0_1 x.checksum app-x.checksum-changelog-1 at 0 1"}},
		{name: "names of Kafka Streams' own stores",
			files: rocks(map[string]string{
				"shop-2/0_0/.checkpoint": offsets("shop-2-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog 0 10",
					"shop-2-KSTREAM-JOINTHIS-0000000016-store-changelog 0 11", "shop-2-a--b-changelog 0 12", "shop-2-changelog-changelog 0 13", "shop-kv-changelog 0 14"),
				"shop-2/0_0/KSTREAM-JOINTHIS-0000000016-store.position": offsets("left 0 1", "right 0 2"),
			}, "shop-2/0_0/rocksdb/KSTREAM-AGGREGATE-STATE-STORE-0000000003", "shop-2/0_0/KSTREAM-JOINTHIS-0000000016-store/KSTREAM-JOINTHIS-0000000016-store.1795966500000",
				"shop-2/0_0/rocksdb/a--b", "shop-2/0_0/rocksdb/changelog"),
			options: Options{Guarantee: AtLeastOnce},
			entries: []string{"0_0 - shop-kv-changelog-0 at 14 15", "0_0 KSTREAM-AGGREGATE-STATE-STORE-0000000003 shop-2-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog-0 at 10 11",
				"0_0 KSTREAM-JOINTHIS-0000000016-store shop-2-KSTREAM-JOINTHIS-0000000016-store-changelog-0 at 11 12",
				"0_0 a--b shop-2-a--b-changelog-0 at 12 13", "0_0 changelog shop-2-changelog-changelog-0 at 13 14"},
			positions: []string{"0_0 KSTREAM-JOINTHIS-0000000016-store left-0 1 2", "0_0 KSTREAM-JOINTHIS-0000000016-store right-0 2 3"}},
		{name: "a position file that is cut off concerns its store only",
			files: rocks(map[string]string{
				"app/0_0/.checkpoint": offsets("app-a-changelog 0 5", "app-b-changelog 0 6"),
				"app/0_0/a.position":  "0\n2\nin 0 7\n",
				"app/0_0/b.position":  offsets("in 0 7", "in 1 -1", "in 2 -4", "in 3 9223372036854775807"),
			}, "app/0_0/rocksdb/a", "app/0_0/rocksdb/b"),
			options: Options{Guarantee: AtLeastOnce}, problems: 1, notOK: true,
			entries:   []string{"0_0 a app-a-changelog-0 at 5 6", "0_0 b app-b-changelog-0 at 6 7"},
			positions: []string{"0_0 b in-0 7 8"}},
		{name: "a .checkpoint that is quarantined says nothing of its stores",
			files: rocks(map[string]string{
				"app/0_0/.checkpoint": "1\n1\napp-a-changelog 0 5\n",
				"app/0_0/a.position":  offsets("in 0 7"),
				"app/0_1/.checkpoint": offsets("app-a-changelog 1 8"),
			}, "app/0_0/rocksdb/a", "app/0_1/rocksdb/a"),
			options: Options{Guarantee: AtLeastOnce}, problems: 1, notOK: true,
			entries:   []string{"0_1 a app-a-changelog-1 at 8 9"},
			positions: []string{"0_0 a in-0 7 8"}},
		{name: "folders without anything to say",
			files:   map[string]string{"app/0_0/": "", "app/1_0/.lock": "", "app/2_0/rocksdb/": "", "app/.lock": "", "app/3_0/.checkpoint.tmp": "0\n1\n"},
			entries: nil},
	}
}

// build makes the directory. Times are given for the names that end like the key; the longest wins.
func (s shape) build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	checkpoint := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for name, content := range s.files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(path, 0o700))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(content), 0o600))
		at, longest := checkpoint, -1
		for suffix, seconds := range s.seconds {
			if strings.HasSuffix(name, suffix) && len(suffix) > longest {
				at, longest = checkpoint.Add(time.Duration(seconds*float64(time.Second))), len(suffix)
			}
		}
		must(t, os.Chtimes(path, at, at))
	}
	return dir
}

func said(r *Report) (entries, positions []string, problems int) {
	for _, task := range r.Tasks {
		for _, e := range task.Entries {
			if e.State != StateAbsent {
				store := e.Store
				if store == "" {
					store = "-"
				}
				entries = append(entries, fmt.Sprintf("%s %s %s %s %s %s", task.Task, store, shownPartition(e.Topic, e.Partition), e.State, number(e.Raw), number(e.NextOffset)))
			}
		}
		for _, p := range task.Positions {
			positions = append(positions, fmt.Sprintf("%s %s %s %d %d", task.Task, p.Store, shownPartition(p.Topic, p.Partition), p.Raw, p.NextOffset))
		}
		for _, f := range task.Files {
			if f.Status == StatusQuarantined {
				problems++
			}
		}
	}
	slices.Sort(entries)
	slices.Sort(positions)
	return entries, positions, problems
}

// Shapes beside those of testdata: planned, they say what is true; done, nothing but the names of
// offset files changes, as the data is RocksDB's; and a second run has nothing to do.
func TestShapes(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			dir := s.build(t)
			s.options.Logger = quiet
			before := everyFile(t, dir)
			r, err := Plan(t.Context(), dir, s.options)
			must(t, err)
			entries, positions, problems := said(r)
			if diff := cmp.Diff(s.entries, entries); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(s.positions, positions); diff != "" {
				t.Errorf("positions (-want +got):\n%s", diff)
			}
			if problems != s.problems || r.OK == s.notOK {
				t.Errorf("%d quarantined, ok %v", problems, r.OK)
			}
			if diff := cmp.Diff(before, everyFile(t, dir)); diff != "" {
				t.Errorf("planning changed:\n%s", diff)
			}
			done, err := Apply(t.Context(), dir, s.options)
			must(t, err)
			if got, _, _ := said(done); !slices.Equal(got, entries) {
				t.Errorf("done: %q, planned: %q", got, entries)
			}
			checkKept(t, dir, before)
			after := everyFile(t, dir)
			again, err := Apply(t.Context(), dir, s.options)
			must(t, err)
			if diff := cmp.Diff(after, everyFile(t, dir)); diff != "" || !again.OK {
				t.Errorf("the second run: ok %v, changed:\n%s", again.OK, diff)
			}
		})
	}
}

// everyFile gives the files below dir, with content and time.
func everyFile(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == lockName {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = fmt.Sprintf("%v %q", info.ModTime(), b)
		return err
	}))
	return all
}

// checkKept: every file is there under its own name or one that says what became of it.
func checkKept(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	after := everyFile(t, dir)
	for name, content := range before {
		found := false
		for now, x := range after {
			base, _, _ := strings.Cut(now, quarantineMarker)
			base = strings.TrimSuffix(base, migratedSuffix)
			found = found || base == name && x == content
		}
		if !found && !strings.HasSuffix(name, temporarySuffix) {
			t.Errorf("%s is gone, or was changed", name)
		}
	}
}
