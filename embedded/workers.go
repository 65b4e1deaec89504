package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/task"
)

// shared is the key of the one worker that has all tasks which the group gives. Of those that are assigned by hand each
// has its own worker, under the number of its partition.
const shared = -1

func (h *Host) keyOf(partition int32) int32 {
	if h.byHand.Load() {
		return partition
	}
	return shared
}

// worker gives the one for the task of a partition; nil before it was made. The lock is held.
func (h *Host) worker(partition int32) *task.Hosted { return h.workers[h.keyOf(partition)] }

// makeWorker gives the worker for tasks that are about to be taken over; it opens one that is missing,
// which fences the former user of its transactional id. Tasks that are assigned by hand come one by one.
func (h *Host) makeWorker(ctx context.Context, ids []processor.TaskID) (*task.Hosted, error) {
	h.preparing.Lock()
	defer h.preparing.Unlock()
	partition := ids[0].Partition
	h.mu.Lock()
	w := h.worker(partition)
	h.mu.Unlock()
	if w != nil {
		return w, nil
	}
	cfg, sinks, err := h.workerConfig(partition)
	if err != nil {
		return nil, err
	}
	w = task.NewHosted(cfg, sinks...)
	if err := w.Open(ctx); err != nil {
		h.closeWorker(w)
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.workers[h.keyOf(partition)] = w // Close waits for this goroutine before it closes workers
	h.board.add(w)
	return w, nil
}

func (h *Host) workerConfig(partition int32) (cfg task.Config, sinks []kafka.Topic, err error) {
	for _, name := range h.cfg.Outputs {
		sinks = append(sinks, h.found.topics[name])
	}
	if err := h.choose(); err != nil {
		return cfg, nil, err
	}
	id := fmt.Sprintf("%s-%s-0", h.cfg.App, h.dir.ProcessID()) // stable, so that a restart fences its former life
	if h.byHand.Load() {
		id = exclusiveID(h.cfg.App, partition)
	} else if err := h.dir.RecordTransactionalID(id); err != nil {
		return cfg, nil, err
	}
	c, s := h.consumer.Client, h.consumer.Settings
	return task.Config{Name: "host", AppID: h.cfg.App, Group: h.consumer.Group, Topology: h.found.topology, Guarantee: h.cfg.Guarantee,
		Limits: h.cfg.Limits, Start: task.StartPosition{Spec: h.consumer.Start}, Existing: h.choice.existing, OnConflict: h.choice.conflict, WhileRunning: h.cfg.OnConflict, Topics: h.found.topics,
		OpenStore: h.openStore, StoreClosed: h.storeClosed, Keep: h.keep, Offsets: h.offsets, Owner: h.dir.ProcessID(), Member: h.member, RestoreListener: h.cfg.RestoreListener, Logger: h.log,
		Clients: task.Clients{
			Admin:    h.admin,
			Consumer: func() (kafka.Consumer, error) { return c.NewConsumer(s, kafka.ConsumerConfig{}) },
			Outputs:  func() (kafka.Producer, error) { return c.NewProducer(s, kafka.ProducerConfig{}) },
			Transactional: func() (kafka.Transactional, error) {
				t, err := c.NewTransactional(s, kafka.TransactionalConfig{ID: id, Timeout: h.cfg.TransactionTimeout})
				if err == nil && h.byHand.Load() {
					t = &exclusive{Transactional: t, id: id, timeout: h.cfg.TransactionTimeout, committed: h.committed}
				}
				return t, err
			}}}, sinks, nil
}

func (h *Host) committed(ctx context.Context, tps ...kafka.TopicPartition) (map[kafka.TopicPartition]kafka.CommittedOffset, error) {
	return h.admin.CommittedOffsets(ctx, h.consumer.Group, tps...)
}

// dismiss closes the workers of partitions that were assigned by hand, when their tasks are closed: nobody else may be fenced by them later.
func (h *Host) dismiss(tps []kafka.TopicPartition) error {
	if !h.byHand.Load() {
		return nil
	}
	var errs []error
	for _, tp := range tps {
		if w := h.workers[tp.Partition]; w != nil {
			delete(h.workers, tp.Partition)
			delete(h.halfway, w)
			ctx, cancel := context.WithTimeout(h.life, h.cfg.RevokeTimeout)
			errs = append(errs, w.Close(ctx))
			cancel()
			h.board.remove(w)
		}
	}
	return errors.Join(errs...)
}

func (h *Host) closeWorker(w *task.Hosted) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := w.Close(ctx); err != nil {
		h.log.Warn("close worker", "error", err)
	}
}
