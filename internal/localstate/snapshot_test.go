package localstate

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/statestore"
)

func TestSnapshotNamesTheTaskThatFails(t *testing.T) {
	state := t.TempDir()
	dir, err := statedir.Open(state, "app")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	l := &Leases{Dir: dir, Holder: "a test", Log: slog.New(slog.DiscardHandler)}
	stores := map[string]*statestore.TaskStore{}
	for _, id := range []string{"0_0", "0_1", "0_2"} {
		s, err := l.Open(id, func() (*statestore.TaskStore, error) {
			return statestore.Open(dir.TaskDir(id), statestore.Options{Logger: l.Log})
		})
		if err != nil {
			t.Fatal(err)
		}
		stores[id] = s
		t.Cleanup(func() { _ = s.Close() })
	}
	if err := stores["0_1"].Close(); err != nil { // as a task that is lost meanwhile
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "snapshot")
	err = l.Snapshot(context.Background(), to)
	if !errors.Is(err, statestore.ErrClosed) || !strings.Contains(err.Error(), "task 0_1") || strings.Contains(err.Error(), "task 0_0") {
		t.Errorf("%v; want ErrClosed of task 0_1 alone", err)
	}
	for id, want := range map[string]bool{"0_0": true, "0_1": false, "0_2": true} {
		v, err := statestore.OpenReadOnly(filepath.Join(to, "app", id), statestore.ReadOptions{Logger: l.Log})
		if err == nil {
			err = v.Close()
		}
		if there := err == nil; there != want {
			t.Errorf("snapshot of %s: %v", id, err)
		}
	}
	apps, _, err := statedir.Look(to)
	if err != nil || len(apps) != 1 || apps[0].ID != "app" || len(apps[0].Tasks) != 2 {
		t.Errorf("what the tools find: %+v, %v", apps, err)
	}
	l.Closed("0_1", nil)
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := l.Snapshot(context.Background(), to); err != nil {
		t.Errorf("when the task is let go: %v", err)
	}
}

func TestSnapshotFollowsLinks(t *testing.T) {
	state, outside := t.TempDir(), t.TempDir()
	dir, err := statedir.Open(state, "app")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	l := &Leases{Dir: dir, Holder: "a test", Log: slog.New(slog.DiscardHandler)}
	link := filepath.Join(outside, "link")
	if err := os.Symlink(dir.Path(), link); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{filepath.Join(link, "below"), filepath.Join(link, "far", "below")} {
		if err := l.Snapshot(context.Background(), to); err == nil || !strings.Contains(err.Error(), "inside of the state directory") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if err := l.Snapshot(context.Background(), filepath.Join(outside, "beside")); !errors.Is(err, ErrNothingOpen) {
		t.Errorf("beside the state directory: %v", err)
	}
}
