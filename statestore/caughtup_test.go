package statestore

import (
	"testing"
	"time"
)

// The time at which nothing was missing is that of the creation, then of the commits; a restore that
// is not over does not move it, and it survives.
func TestCaughtUpAt(t *testing.T) {
	dir := t.TempDir()
	begin := time.Now().Truncate(time.Millisecond)
	s := openTask(t, dir)
	created := s.CaughtUpAt()
	if created.Before(begin) || created.After(time.Now()) {
		t.Fatalf("created at %v, after %v", created, begin)
	}
	if err := s.Restore("a", []RestoreRecord{{Key: []byte("k"), Value: []byte("v")}}, 7); err != nil {
		t.Fatal(err)
	}
	if got := s.CaughtUpAt(); !got.Equal(created) {
		t.Errorf("a restore moved it to %v", got)
	}
	tick := time.After(2 * time.Millisecond) // so that a later time is another one
	<-tick
	if err := s.Complete(Progress{ID: CommitID{Epoch: 1}}, nil); err != nil {
		t.Fatal(err)
	}
	done := s.CaughtUpAt()
	if !done.After(created) {
		t.Errorf("the end of the restore left it at %v", done)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTask(t, dir)
	if got := s.CaughtUpAt(); !got.Equal(done) {
		t.Errorf("after opening it is %v, was %v", got, done)
	}
	if err := s.Restore("a", nil, 9); err != nil {
		t.Fatal(err)
	}
	if got := s.CaughtUpAt(); !got.Equal(done) {
		t.Errorf("a restore moved it to %v", got)
	}
}

// Data that was imported is as old as the other program left it, until a commit or a restore has brought it up.
func TestCaughtUpAtOfImports(t *testing.T) {
	dir := t.TempDir()
	open := func() *TaskStore {
		t.Helper()
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if err := s.Register(Spec{Name: "a", Kind: KindKeyValue}, Spec{Name: "b", Kind: KindKeyValue}, Spec{Name: "c", Kind: KindKeyValue}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	old, older := time.UnixMilli(1_700_000_000_000), time.UnixMilli(1_600_000_000_000)
	record := func(store string, data time.Time, want time.Time) {
		t.Helper()
		if err := s.RecordImport(Import{Store: store, Source: "old", Time: time.Now(), Data: data}, At(5), nil); err != nil {
			t.Fatal(err)
		}
		if got := s.CaughtUpAt(); !got.Equal(want) {
			t.Errorf("with %s of %v it is %v, want %v", store, data, got, want)
		}
	}
	record("a", old, old)
	record("b", older, older)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	if got := s.CaughtUpAt(); !got.Equal(older) {
		t.Errorf("after opening it is %v", got)
	}
	record("c", time.Time{}, time.Time{})
	tick := time.After(2 * time.Millisecond)
	<-tick
	before := time.Now()
	if err := s.Complete(Progress{ID: CommitID{Epoch: 1}}, nil); err != nil {
		t.Fatal(err)
	}
	if got := s.CaughtUpAt(); got.Before(before.Truncate(time.Millisecond)) {
		t.Errorf("after a commit it is %v", got)
	}
}

func openTask(t *testing.T, dir string) *TaskStore {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Register(Spec{Name: "a", Kind: KindKeyValue}); err != nil {
		t.Fatal(err)
	}
	return s
}
