package statestore

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// everyKind declares a store of each kind of logic, named after it.
func everyKind(changelog string) []Spec {
	return []Spec{
		{Name: "plain", Kind: KindKeyValue, Changelog: changelog},
		{Name: "window", Kind: KindWindow, Changelog: changelog, Retention: time.Hour, WindowSize: time.Second},
		{Name: "session", Kind: KindSession, Changelog: changelog, Retention: time.Hour},
		{Name: "versioned", Kind: KindVersioned, Changelog: changelog, Retention: time.Hour},
	}
}

// writeEveryKind writes a value of one key into each store, at a time that is also that of window, session and
// version.
func writeEveryKind(t *testing.T, s *TaskStore, value string, at int64) {
	t.Helper()
	k, v := []byte("k"), []byte(value)
	must(t, handle(t, s, "plain").Put(k, v, at))
	w, err := s.Window("window")
	must(t, err)
	must(t, w.Put(k, v, at, at))
	x, err := s.Session("session")
	must(t, err)
	must(t, x.Put(k, v, at, at, at))
	ver, err := s.Versioned("versioned")
	must(t, err)
	put, err := ver.Put(k, v, at)
	must(t, err)
	if !put.Stored || !put.Current {
		t.Errorf("put of a version: %+v", put)
	}
}

// A muted store takes writes without a trace: no row, no change, no stream time; the others go on.
func TestMute(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, "t", memOptions(fs), everyKind("changelog")...)
	writeEveryKind(t, s, "old", 1000)
	commit(t, s, Progress{}, nil)
	s.Mute("window", "session", "versioned", "no such store")
	writeEveryKind(t, s, "new", 2000)
	x, err := s.Seal(Progress{})
	must(t, err)
	if x.Len() != 1 {
		t.Errorf("%d changes with all but one store muted", x.Len())
	}
	must(t, s.Commit(x, nil))
	s.Release(x)
	s.Mute("plain", "window", "session", "versioned")
	kv := handle(t, s, "plain")
	must(t, kv.Delete([]byte("k"), 3000))
	must(t, kv.DeleteRange(nil, nil, 3000))
	w, _ := s.Window("window")
	sessions, _ := s.Session("session")
	must(t, sessions.Remove([]byte("k"), 1000, 1000, 3000))
	versions, _ := s.Versioned("versioned")
	if before, ok, err := versions.Delete([]byte("k"), 3000); err != nil || !ok || string(before.Value) != "old" {
		t.Errorf("delete of a version gives %q, %v, %v", before.Value, ok, err)
	}
	if s.DirtyBytes() != 0 {
		t.Errorf("%d bytes were written", s.DirtyBytes())
	}
	if v, _, ok, err := kv.Get([]byte("k")); err != nil || !ok || string(v) != "new" {
		t.Errorf("plain: %q, %v, %v", v, ok, err)
	}
	if v, _, ok, err := w.Get([]byte("k"), 1000); err != nil || !ok || string(v) != "old" || w.StreamTime() != 1000 {
		t.Errorf("window: %q, %v, %v, stream time %d", v, ok, err, w.StreamTime())
	}
	if v, ok, err := sessions.Get([]byte("k"), 1000, 1000); err != nil || !ok || string(v) != "old" || sessions.StreamTime() != 1000 {
		t.Errorf("session: %q, %v, %v, stream time %d", v, ok, err, sessions.StreamTime())
	}
	if v, ok, err := versions.Get([]byte("k")); err != nil || !ok || string(v.Value) != "old" || versions.StreamTime() != 1000 {
		t.Errorf("versioned: %q, %v, %v, stream time %d", v.Value, ok, err, versions.StreamTime())
	}
	s.Mute()
	writeEveryKind(t, s, "newest", 4000)
	if v, ok, err := versions.Get([]byte("k")); err != nil || !ok || string(v.Value) != "newest" {
		t.Errorf("no longer muted: %q, %v, %v", v.Value, ok, err)
	}
}

// A store without a changelog says that it is in the middle of a replay, also after a restart, until a commit
// without one; a store with a changelog is complete all the time.
func TestReplayingIsRecorded(t *testing.T) {
	fs := vfs.NewMem()
	specs := []Spec{{Name: "local", Kind: KindKeyValue}, {Name: "logged", Kind: KindKeyValue, Changelog: "changelog"}}
	s := openStore(t, "t", memOptions(fs), specs...)
	state := func(what string, complete, replaying bool) {
		t.Helper()
		all, err := s.Stores()
		must(t, err)
		if all[0].Complete != complete || all[0].Replaying != replaying {
			t.Errorf("%s: complete %t, replaying %t", what, all[0].Complete, all[0].Replaying)
		}
		if !all[1].Complete || all[1].Replaying {
			t.Errorf("%s: the store with a changelog: %+v", what, all[1])
		}
	}
	must(t, s.Complete(Progress{ID: CommitID{1, 0}, StreamTime: NoStreamTime, Replaying: true, Positions: []Position{{"in", 0, 3}}}, nil))
	state("begun", false, true)
	must(t, handle(t, s, "local").Put([]byte("k"), []byte("v"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}, Replaying: true, Positions: []Position{{"in", 0, 5}}}, nil)
	state("in the middle", false, true)
	must(t, s.Close())
	s = openStore(t, "t", memOptions(fs), specs...)
	state("opened again", false, true)
	if p := s.Positions(); len(p) != 1 || p[0].Next != 5 {
		t.Errorf("positions %v", p)
	}
	must(t, handle(t, s, "local").Put([]byte("k"), []byte("w"), 1))
	commit(t, s, Progress{ID: CommitID{1, 2}}, nil)
	state("over", true, false)
	must(t, s.Complete(Progress{ID: CommitID{1, 3}, Replaying: true}, nil))
	must(t, s.Clear("local"))
	state("cleared", false, false)
}

// What was the offset of a changelog that the store has no more is none of a replay's.
func TestStoreLosesItsChangelog(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, "t", memOptions(fs), Spec{Name: "local", Kind: KindKeyValue, Changelog: "changelog"})
	must(t, handle(t, s, "local").Put([]byte("k"), []byte("v"), 1))
	commit(t, s, Progress{ID: CommitID{1, 1}}, map[string]Offset{"local": At(7)})
	must(t, s.Close())
	s = openStore(t, "t", memOptions(fs), Spec{Name: "local", Kind: KindKeyValue})
	must(t, s.Complete(Progress{ID: CommitID{2, 0}, Replaying: true}, nil))
	must(t, handle(t, s, "local").Put([]byte("k"), []byte("w"), 1))
	commit(t, s, Progress{ID: CommitID{2, 1}, Replaying: true}, nil)
	all, err := s.Stores()
	must(t, err)
	if !all[0].Offset.IsAbsent() || !all[0].Replaying {
		t.Errorf("%+v", all[0])
	}
}
