package streams_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/streams"
)

// A snapshot of a running application is whole, and of one commit of each task: what is counted in it is what its positions say.
func TestSnapshotUnderLoad(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testbroker.Kfake(t), franz.Client{})
	b := streams.NewBuilder()
	streams.Stream(b, e.in, streams.With(serde.String, serde.String)).GroupByKey().Count(streams.Materialized{Name: "counts"})
	topology, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	app, err := streams.New(topology, e.config())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	contains(t, app.Snapshot(e.ctx(), filepath.Join(dir, "idle")), "no task store is open")
	ended := make(chan error, 1)
	go func() { ended <- app.Run(context.Background()) }()
	t.Cleanup(func() { _ = app.Close(e.ctx()) })
	r := &running{app, e, ended}
	r.catchUp()
	e.snapshotsAreWhole(r, dir)
	e.snapshotsAreRefused(r, dir)
	r.close()
	contains(t, app.Snapshot(e.ctx(), filepath.Join(dir, "closed")), "no task store is open")
}

func (e *env) snapshotsAreWhole(r *running, dir string) {
	e.t.Helper()
	const rounds, each = 12, 300
	for round := range rounds {
		var records []kafka.Record
		for i := range each {
			records = append(records, kafka.Record{Topic: e.in, Partition: int32(i % 2), Timestamp: int64(1000 + i), Key: fmt.Append(nil, "key-", i%17), Value: []byte("v")})
		}
		e.produceRecords(records...)
		if round == rounds-1 {
			r.catchUp()
		}
		to := filepath.Join(dir, fmt.Sprint(round))
		if err := r.Snapshot(e.ctx(), to); err != nil {
			e.t.Fatal(err)
		}
		sum := int64(0)
		for p := range int32(2) {
			sum += e.countedInSnapshot(filepath.Join(to, e.app, fmt.Sprint("0_", p)), p)
		}
		if round == rounds-1 && sum != rounds*each {
			e.t.Errorf("the last snapshot counts %d records; want %d", sum, rounds*each)
		}
	}
}

func (e *env) countedInSnapshot(dir string, partition int32) (sum int64) {
	e.t.Helper()
	v, err := statestore.OpenReadOnly(dir, statestore.ReadOptions{Logger: discard})
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = v.Close() }()
	if found, err := v.Verify(e.ctx()); err != nil || len(found.Problems) > 0 {
		e.t.Errorf("%s: %v, problems %q", dir, err, found.Problems)
	}
	for row, err := range v.Entries("counts", nil, nil) {
		if err != nil {
			e.t.Fatal(err)
		}
		n, err := serde.Int64.Decode(row.Value)
		if err != nil {
			e.t.Fatal(err)
		}
		sum += n
	}
	next := int64(0)
	for _, p := range v.Metadata().Positions {
		if p.Topic == e.in && p.Partition == partition {
			next = p.Next
		}
	}
	if sum != next {
		e.t.Errorf("%s: %d records are counted, and the position is %d", dir, sum, next)
	}
	return sum
}

func (e *env) snapshotsAreRefused(r *running, dir string) {
	e.t.Helper()
	contains(e.t, r.Snapshot(e.ctx(), dir), dir, "is not empty")
	contains(e.t, r.Snapshot(e.ctx(), filepath.Join(e.dir, "below")), "is inside of the state directory")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(e.dir, link); err != nil {
		e.t.Fatal(err)
	}
	contains(e.t, r.Snapshot(e.ctx(), filepath.Join(link, "below")), "is inside of the state directory")
	ended, end := context.WithCancel(context.Background())
	end()
	stopped := filepath.Join(dir, "stopped")
	contains(e.t, r.Snapshot(ended, stopped), "task 0_0", context.Canceled.Error())
	if _, err := os.Stat(stopped); !os.IsNotExist(err) {
		e.t.Errorf("a snapshot that was stopped left %s: %v", stopped, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		e.t.Fatal(err)
	}
	if err := r.Snapshot(e.ctx(), filepath.Join(file, "below")); err == nil {
		e.t.Error("below a file there can be no snapshot")
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		e.t.Fatal(err)
	}
	if err := r.Snapshot(e.ctx(), filepath.Join(dir, "empty")); err != nil {
		e.t.Error(err)
	}
}
