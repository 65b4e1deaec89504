package task

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// flood has a record of each source whenever it is asked.
type flood struct {
	quiet
	next atomic.Int64
}

func (f *flood) Poll(ctx context.Context, into *kafka.Poll) error {
	into.Reset()
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(time.Millisecond):
	}
	o := 100 + f.next.Add(1)
	for _, tp := range []kafka.TopicPartition{inA, inB} {
		into.Partitions = append(into.Partitions, kafka.Fetched{TopicPartition: tp, Next: o + 1,
			Records: []kafka.Record{{Topic: tp.Topic, Offset: o, Key: []byte("k"), Value: []byte("v"), Timestamp: 1}}})
	}
	return nil
}

// turnsTxn counts the commits of pieces and of the task that runs. Each takes a while; pieces may fail.
type turnsTxn struct {
	*seedTxn
	took            time.Duration
	pieceErr        error
	pieces, commits int
}

func (x *turnsTxn) Commit(ctx context.Context) error {
	<-time.After(x.took)
	if len(x.open) > 0 && x.open[0].Partition == 1 {
		if x.pieces++; x.pieceErr != nil {
			return x.pieceErr
		}
	} else {
		x.commits++
	}
	return x.seedTxn.Commit(ctx)
}

// Under a load that never leaves a moment without a commit that is due, a store is written into its changelog all the same.
func TestSeedingAndCommitsTakeTurns(t *testing.T) {
	for _, c := range []struct {
		name    string
		took    time.Duration
		records int
	}{{"commits slower than their interval", 130 * time.Millisecond, 0}, {"full before the commit ends", 20 * time.Millisecond, 2}} {
		t.Run(c.name, func(t *testing.T) {
			x := newSeedWorld(t)
			txn := &turnsTxn{seedTxn: x.txn, took: c.took}
			x.w.txn, x.w.consumer = txn, &flood{}
			x.w.cfg.Limits.CommitRecords = c.records
			x.stopWhenRunning()
			x.begin()
			defer time.AfterFunc(20*time.Second, x.w.Stop).Stop()
			if err := x.w.loop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if txn.pieces != 3 || txn.commits < 2 {
				t.Errorf("%d pieces of 3, %d commits", txn.pieces, txn.commits)
			}
			x.release()
		})
	}
}

// A changelog that cannot be written does not take every interval of the other tasks with it.
func TestPieceThatCannotBeWrittenLeavesCommitsBe(t *testing.T) {
	x := newSeedWorld(t)
	txn := &turnsTxn{seedTxn: x.txn, took: 10 * time.Millisecond, pieceErr: &kafka.Error{Class: kafka.ClassTimeout, Op: "commit"}}
	x.w.txn, x.w.consumer = txn, &flood{}
	x.w.cfg.Limits.CommitRecords = 0
	x.begin()
	for i := range 3 {
		if err := x.w.loop(t.Context()); disposition(err) != Reload {
			t.Fatalf("cycle %d: %v", i, err)
		}
		x.w.await() // as a reload does
		x.w.box.drop()
		x.w.running = newInterval()
		if err := x.run.task.drop(); err != nil {
			t.Fatal(err)
		}
		if err := x.w.newInstance(x.run.task); err != nil {
			t.Fatal(err)
		}
	}
	if txn.pieces != 3 || txn.commits < 10 {
		t.Errorf("%d pieces failed, %d commits of the task that is well", txn.pieces, txn.commits)
	}
	x.release()
}
