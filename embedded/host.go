package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/internal/localstate"
	"github.com/tidemark-streams/tidemark/internal/statedir"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// errors of a [Host].
var (
	// ErrClosed: the host was closed.
	ErrClosed = errors.New("the host is closed")
	// ErrNotCommitted: Close closed everything, but the last commit did not succeed, or nobody knows whether it did. In the middle of
	// a rebalance the group refuses it. Nothing is lost.
	ErrNotCommitted = errors.New("the last commit did not succeed, and the messages since the one before may be processed again")
	// ErrNotAssigned: the partition was never assigned to this host.
	ErrNotAssigned = errors.New("the partition was not assigned to this host")
)

// Host keeps the state of the partitions that a consumer is assigned. The doors make one and have
// the user's side of it. It is safe for concurrent use; one call works at a time.
type Host struct {
	cfg      Config
	consumer Consumer
	log      *slog.Logger

	dir       *statedir.Dir
	leases    localstate.Leases
	offsets   *offsetcache.Cache
	scan      *offsetcache.Scan
	admin     kafka.Admin
	resources *statestore.Resources
	choice    startChoice
	life      context.Context // ends with Close
	open      context.Context // ends when Close begins
	well      context.Context // ends with the first failure too
	end       context.CancelFunc
	ending    context.CancelFunc
	unwell    context.CancelFunc
	// commitLife is replaced when a revoke had to end it.
	commitLife atomic.Pointer[commitLife]
	work       sync.WaitGroup
	preparing  sync.Mutex
	found      *found      // what the first assignment has found out; guarded by preparing
	byHand     atomic.Bool // partitions are assigned by hand, not by the group
	assigning  sync.Mutex  // one Assign at a time
	fetching   sync.Mutex  // of what is assigned by hand: what is let go is not begun afterwards

	board      board
	place      place
	mu         turn
	workers    map[int32]*task.Hosted // see worker
	halfway    map[*task.Hosted]bool  // see rewind
	inputs     []string               // topics, from the first assignment on
	partitions int32                  // of each input
	parts      map[kafka.TopicPartition]*part
	batches    map[*batch]bool
	function   func(*Task) error // of the Process under way
	caller     atomic.Uint64     // its goroutine, in debug mode
	later      []func() error    // calls into the client, for when the lock is free
	err        error             // why the host is of no use any more
	dropped    error             // why what was processed was dropped, since Commit was last called
	closed     bool
}

// Open is for doors. It locks the state directory; the first assignment opens the rest.
func Open(ctx context.Context, consumer Consumer, cfg Config) (_ *Host, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.defaults()
	h := &Host{cfg: cfg, consumer: consumer, log: cfg.Logger, mu: newTurn(), parts: map[kafka.TopicPartition]*part{}, halfway: map[*task.Hosted]bool{}, workers: map[int32]*task.Hosted{}, batches: map[*batch]bool{}}
	h.life, h.end = context.WithCancel(context.Background())
	h.open, h.ending = context.WithCancel(h.life)
	h.well, h.unwell = context.WithCancel(h.life)
	h.commitLife.Store(h.newCommitLife())
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close(ctx))
		}
	}()
	if _, err := h.topology([]string{"input"}); err != nil {
		return nil, fmt.Errorf("embedded config: Stores: %w", err)
	}
	if h.dir, err = statedir.Open(cfg.StateDir, cfg.App); err != nil {
		return nil, err
	}
	if h.resources, err = statestore.NewResources(cfg.Resources); err != nil {
		return nil, fmt.Errorf("state stores: %w", err)
	}
	h.board.change(func() { h.board.stores = h.resources })
	if h.admin, err = consumer.Client.NewAdmin(consumer.Settings); err != nil {
		return nil, fmt.Errorf("open admin client: %w", err)
	}
	if err := h.readState(ctx); err != nil {
		return nil, err
	}
	if len(cfg.Outputs) > 0 { // a name that is wrong shows at once
		have, err := h.admin.Topics(ctx, cfg.Outputs...)
		if err != nil {
			return nil, fmt.Errorf("describe outputs: %w", err)
		}
		for _, name := range cfg.Outputs {
			if _, ok := have[name]; !ok {
				return nil, fmt.Errorf("output topic %s does not exist: create it first", name)
			}
		}
	}
	h.work.Go(h.keepTime) // all ended by Close
	h.work.Go(h.watchOffsets)
	h.work.Go(h.watchInputs)
	h.work.Go(h.tellWaiting)
	h.work.Go(func() { localstate.Clean(h.life, h.dir, h.offsets, cfg.CleanupDelay, h.resources, h.log) })
	return h, nil
}

// Context gives a context that ends with ctx, and when the host fails or is closed. It is for a poll that waits for as long as its context
// lasts: a host that has failed fetches nothing, and nothing else would end that poll.
func (h *Host) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(h.well, cancel)
	return ctx, func() { unhook(); cancel() }
}

func (h *Host) usable() error {
	if h.closed {
		return ErrClosed
	}
	return h.err
}

// Commit commits what was processed and returns when that is done; commits also come by themselves
// (Config.Limits). When ctx ends before, the commit goes on beside the loop. An error also tells, once, that messages were dropped since it
// was last called: their partition was lost, or a commit by itself has failed. It must not be called from the function given
// to Process: there, [Task.Commit] is.
func (h *Host) Commit(ctx context.Context) error {
	if err := h.lockWithin(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	defer h.unlock()
	if err := h.usable(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	mending, cancel := context.WithCancel(h.open)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	var errs []error
	dropped := h.dropped
	for _, w := range h.workers {
		if h.halfway[w] {
			continue // what is dropped says why
		}
		switch err := w.Commit(h.commits(), ctx); {
		case errors.Is(err, task.ErrUnderWay):
			errs = append(errs, fmt.Errorf("commit: %w", err))
		case err != nil:
			h.mend(mending, w, err)
			errs = append(errs, fmt.Errorf("commit: %w; the messages since the last commit come again", err))
		}
	}
	if dropped != nil {
		errs = append(errs, fmt.Errorf("commit: messages that were processed since the commit before are not in it, they come again, here or elsewhere: %w", dropped))
	}
	h.dropped = nil
	return errors.Join(errs...)
}

// keepTime looks at the commit triggers while no message comes.
func (h *Host) keepTime() {
	tick := time.NewTicker(max(h.cfg.Limits.CommitInterval/2, 5*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-h.life.Done():
			return
		case <-tick.C:
		}
		h.mu.Lock()
		for _, w := range h.workers {
			if h.usable() != nil {
				break
			}
			if h.halfway[w] {
				h.rewind(h.open, w)
			} else if err := w.Turn(h.commits()); err != nil {
				h.mend(h.open, w, err)
			}
		}
		h.unlock()
	}
}

// unlock lets go of the lock, and then does what had to wait for that (E5).
func (h *Host) unlock() {
	later := h.later
	h.later = nil
	h.mu.Unlock()
	for _, f := range later {
		if err := f(); err != nil {
			h.log.Error("set the consumer's position", "error", err)
			h.mu.Lock()
			h.fail(err)
			h.mu.Unlock()
		}
	}
}

// fail makes the host unusable.
func (h *Host) fail(err error) {
	if h.err == nil && !h.closed {
		h.err = fmt.Errorf("the host has stopped: %w", err)
		h.board.change(func() { h.board.err = h.err })
		h.unwell()
		h.log.Error("the host has stopped: no partition is served any more", "error", err)
	}
}

// Close commits within ctx, closes the stores and ends everything that the host has started. Call it when the loop has ended.
// What was not committed is processed again: see [ErrNotCommitted].
func (h *Host) Close(ctx context.Context) (err error) {
	if err := h.within(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	h.ending()
	defer context.AfterFunc(ctx, h.end)() // whoever has the lock waits for a broker no longer than that
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	if h.err == nil {
		err = h.reclaim(h.life, h.Ready())
	}
	h.closed = true
	h.board.change(func() { h.board.err, h.board.ready = ErrClosed, nil })
	cancelled := h.cancelBatches(nil)
	for _, w := range h.workers {
		if h.err != nil {
			break
		}
		if h.halfway[w] {
			err = errors.Join(err, fmt.Errorf("close: a commit had failed and its tasks were not loaded again yet: %w", ErrNotCommitted))
			continue
		}
		if cerr := w.Commit(h.life, h.life); cerr != nil {
			err = errors.Join(err, fmt.Errorf("close: %w: %w", ErrNotCommitted, cerr))
		}
	}
	h.end()
	for _, w := range h.workers {
		w.Stop()
	}
	h.later = nil
	h.mu.Unlock()
	for _, b := range cancelled {
		<-b.done
	}
	h.work.Wait()
	return errors.Join(err, h.closeParts(ctx))
}

func (h *Host) closeParts(ctx context.Context) error {
	var errs []error
	for _, w := range h.workers {
		errs = append(errs, w.Close(ctx))
	}
	if h.admin != nil {
		h.closeClient(h.admin)
	}
	h.board.change(func() { h.board.stores = nil })
	if h.resources != nil {
		errs = append(errs, h.resources.Close())
	}
	if h.dir != nil {
		errs = append(errs, h.dir.Close())
	}
	return errors.Join(errs...)
}

func (h *Host) closeClient(c kafka.Closer) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		h.log.Warn("close client", "error", err)
	}
}
