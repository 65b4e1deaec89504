package migration

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-streams/tidemark/internal/legacyfixture"
	"github.com/tidemark-streams/tidemark/internal/offsetfile"
)

func legacyCases(t *testing.T, f func(t *testing.T, d legacyfixture.Directory, dir string)) {
	t.Helper()
	all, err := legacyfixture.Directories("testdata/legacy")
	must(t, err)
	if len(all) < 20 {
		t.Fatalf("%d fixtures", len(all))
	}
	for _, d := range all {
		t.Run(d.Name, func(t *testing.T) {
			dir, err := d.Build(t.TempDir())
			must(t, err)
			f(t, d, dir)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func guaranteeOf(d legacyfixture.Directory) Guarantee {
	if d.ProducedBy.Guarantee == "at_least_once" {
		return AtLeastOnce
	}
	return ExactlyOnce
}

func number(n *int64) string { return legacyfixture.Number(n) }

func gotTask(t *testing.T, task Task) legacyfixture.Facts {
	t.Helper()
	s := legacyfixture.NewFacts()
	for _, e := range task.Entries {
		tp := shownPartition(e.Topic, e.Partition)
		switch {
		case e.Store == "":
			s.Unknown[tp] = number(e.Raw)
			if e.Action != ActionNone {
				t.Errorf("entry of no store: %+v", e)
			}
		case e.State != StateAbsent:
			s.Entries[e.Store+" "+tp] = fmt.Sprintf("%s %s %s", e.State, number(e.Raw), number(e.NextOffset))
		case e.Raw != nil || e.NextOffset != nil:
			t.Errorf("an absent entry with numbers: %+v", e)
		}
		if e.Reason == "" || e.Store != "" && e.Action == ActionMigrate {
			t.Errorf("entry without a reason, or RocksDB data that moves: %+v", e)
		}
	}
	for _, p := range task.Positions {
		s.Positions[p.Store+" "+shownPartition(p.Topic, p.Partition)] = fmt.Sprintf("%d %d", p.Raw, p.NextOffset)
	}
	return s
}

func TestLegacyDirectories(t *testing.T) {
	legacyCases(t, func(t *testing.T, d legacyfixture.Directory, dir string) {
		checkCase(t, d, dir, Options{App: d.ProducedBy.ApplicationID, Guarantee: guaranteeOf(d), Map: d.Maps()})
		checkCase(t, d, dir, Options{Map: d.Maps(), Guarantee: guaranteeOf(d)})
		checkCase(t, d, dir, Options{Map: d.Maps(), CleanShutdown: true})
		checkCase(t, d, filepath.Join(dir, d.ProducedBy.ApplicationID), Options{Map: d.Maps(), Guarantee: AtLeastOnce})
	})
}

func checkCase(t *testing.T, d legacyfixture.Directory, dir string, o Options) {
	t.Helper()
	r, err := Plan(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || len(r.Tasks) != len(d.Tasks)+1 || r.Tasks[0].Task != "" || r.Tasks[0].Files[0].Status != StatusOK {
		t.Fatalf("ok %v, %d tasks (%d in the manifest), %+v", r.OK, len(r.Tasks), len(d.Tasks), r.Tasks[0])
	}
	for _, want := range d.Tasks {
		n := slices.IndexFunc(r.Tasks, func(t Task) bool { return t.Task == want.Task })
		if n < 0 {
			t.Fatalf("no task %s", want.Task)
		}
		believed := o.CleanShutdown || o.Guarantee == AtLeastOnce || want.Dirty == "no"
		if diff := cmp.Diff(want.Facts(believed), gotTask(t, r.Tasks[n])); diff != "" {
			t.Errorf("%+v, task %s (-want +got):\n%s", o, want.Task, diff)
		}
		if got := r.Tasks[n].Files[0].Status == StatusOK; got != want.CheckpointFile {
			t.Errorf("task %s: %+v", want.Task, r.Tasks[n].Files)
		}
	}
}

// Done for real, the files are renamed and the data stays; a second run has nothing to say.
func TestApplyToLegacyDirectories(t *testing.T) {
	legacyCases(t, func(t *testing.T, d legacyfixture.Directory, dir string) {
		o := Options{Guarantee: guaranteeOf(d), Map: d.Maps(), Logger: quiet}
		before, err := Plan(t.Context(), dir, o)
		must(t, err)
		r, err := Apply(t.Context(), dir, o)
		must(t, err)
		if diff := cmp.Diff(before, r, cmp.AllowUnexported(Report{}), cmpopts.IgnoreUnexported(Task{}, File{}, Entry{})); diff != "" {
			t.Errorf("planned, done:\n%s", diff)
		}
		for _, e := range d.Tree {
			path := filepath.Join(dir, e.Path)
			moved := strings.HasSuffix(path, "/"+checkpointName) || strings.HasSuffix(path, positionSuffix)
			if exists(t, path) == moved || exists(t, path+migratedSuffix) != moved {
				t.Errorf("%s was to be renamed: %v", path, moved)
			}
		}
		again, err := Apply(t.Context(), dir, o)
		must(t, err)
		for _, task := range again.Tasks {
			for _, e := range task.Entries {
				if e.State != StateAbsent && e.Action != ActionSkip {
					t.Errorf("the second run: %+v", e)
				}
			}
		}
	})
}

func shownPartition(topic string, partition int32) string {
	return offsetfile.Line{Topic: topic, Partition: partition}.TopicPartition()
}
