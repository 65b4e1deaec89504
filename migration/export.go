package migration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/internal/offsetfile"
	"github.com/tidemark-streams/tidemark/statestore"
)

// Exported is the `.checkpoint` file that was written for a task.
type Exported struct {
	Task, Path string
	Entries    []Entry
	// Err: it was not written.
	Err error
}

// Export writes the `.checkpoint` file of Kafka Streams into every task directory, from
// what the task's store says: for programs that read such files, and for whoever leaves. The
// data stays in the task's store. A store that has no known offset is written as -4 (clean,
// unknown): its changelog must be read from the start. A file of another program that was not
// taken over is not replaced. The application must not run.
func Export(ctx context.Context, dir string, o Options) ([]Exported, error) {
	a, err := find(dir, o)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(a, o)
	if err != nil {
		return nil, fmt.Errorf("export from %s: %w", a.path, err)
	}
	all := make([]Exported, len(a.dirs))
	err = inParallel(ctx, o.jobs(len(a.dirs)), len(a.dirs), func(i int) error {
		all[i] = exportTask(a, a.dirs[i], o)
		return nil
	})
	if err = errors.Join(err, unlock()); err != nil {
		return nil, fmt.Errorf("export from %s: %w", a.path, err)
	}
	return all, nil
}

func exportTask(a application, d taskDir, o Options) Exported {
	x := Exported{Task: d.id.String(), Path: filepath.Join(d.path, checkpointName)}
	for _, e := range planTask(a, d, o).Entries {
		// What was exported before is of stores that have an offset of their own.
		if e.Action == ActionMigrate || e.Action == ActionRestore && e.Raw != nil && *e.Raw >= 0 {
			x.Err = fmt.Errorf("%s speaks of store %q, which was not taken over: migrate first, or move the file away", x.Path, e.Store)
			return x
		}
	}
	v, err := statestore.OpenReadOnly(d.path, statestore.ReadOptions{Resources: o.Resources, Logger: o.Logger})
	if err != nil {
		x.Err = err
		return x
	}
	for _, s := range v.Metadata().Stores {
		if s.Spec.Changelog == "" || s.Spec.InMemory {
			continue // Kafka Streams writes no entry for these either
		}
		x.Entries = append(x.Entries, exportEntry(d.id, s))
	}
	if x.Err = v.Close(); x.Err == nil {
		x.Err = writeOffsets(x.Path, x.Entries)
	}
	return x
}

func exportEntry(id taskID, s statestore.StoreMetadata) Entry {
	raw := int64(offsetfile.Unknown)
	e := Entry{Topic: s.Spec.Changelog, Partition: id.partition, Store: s.Spec.Name, State: StateUnknown, Raw: &raw, Action: ActionNone}
	next, ok := s.Offset.Next()
	if !ok || s.Forgotten {
		e.Reason = "no offset is known"
		return e
	}
	switch {
	case id.global:
		raw = next
	case next == 0: // nothing was applied: no record is the last one
		e.Reason = "nothing was applied yet"
		return e
	default:
		raw = next - 1
	}
	e.State, e.NextOffset, e.Reason = StateAt, &next, "as committed"
	return e
}

// writeOffsets replaces the file atomically; it is on the disk afterwards.
func writeOffsets(path string, entries []Entry) error {
	lines := make([]offsetfile.Line, len(entries))
	for i, e := range entries {
		lines[i] = offsetfile.Line{Topic: e.Topic, Partition: e.Partition, Offset: *e.Raw}
	}
	temporary := path + temporarySuffix
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(offsetfile.Format(lines...))
	if err == nil {
		err = f.Sync()
	}
	failpoint.Hit("migration-offsets-written")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return err
}
