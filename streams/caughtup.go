package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/task"
)

// ErrNotRunning means that the application ended before it did what was waited for.
var ErrNotRunning = errors.New("the application is not running")

// CaughtUp waits until everything that is in the inputs now is processed and committed, stage
// by stage: the ends of the sources are captured first; when the sub-topologies that read them
// have committed past them, the ends of the topics these feed; and so on. Records that arrive
// meanwhile do not prolong it. It also counts what other processes of the application commit. A task that
// has failed alone (OnTaskFailure) is not waited for.
//
// If this process is the one that runs the tasks, they are restored and run when it returns.
func (a *App) CaughtUp(ctx context.Context) error {
	err := a.catchUp(ctx)
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrNotRunning) || ctx.Err() == nil && a.ending() {
		// Run is about to return, if it has not: its error is the reason, and not that of a client that
		// was closed under us.
		select {
		case <-a.done:
			err = errors.Join(ErrNotRunning, a.runError())
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("wait to catch up: %w", err)
}

// ending tells whether Run gives its parts back, or has.
func (a *App) ending() bool {
	_, err := a.liveAdmin()
	return err != nil
}

func (a *App) catchUp(ctx context.Context) error {
	if err := a.awaitTasks(ctx); err != nil {
		return err
	}
	subs := a.topology.Subtopologies()
	fed := map[string][]*processor.Subtopology{} // topic -> its writers
	for _, sub := range subs {
		for _, s := range sub.Sinks {
			fed[s] = append(fed[s], sub)
		}
	}
	done := map[string]bool{} // sources committed past their captured end
	for {
		var stage []string
		for _, sub := range subs {
			for _, topic := range sub.Sources {
				if !done[topic] && ready(fed[topic], done) {
					stage = append(stage, topic)
				}
			}
		}
		if len(stage) == 0 { // all done, or sub-topologies that feed each other in a circle
			stage = rest(subs, done)
		}
		if len(stage) == 0 {
			return nil
		}
		if err := a.committedPast(ctx, stage); err != nil {
			return err
		}
		for _, topic := range stage {
			done[topic] = true
		}
	}
}

// ready tells whether all sources of all writers are done.
func ready(writers []*processor.Subtopology, done map[string]bool) bool {
	for _, w := range writers {
		for _, s := range w.Sources {
			if !done[s] {
				return false
			}
		}
	}
	return true
}

func rest(subs []*processor.Subtopology, done map[string]bool) []string {
	var out []string
	for _, sub := range subs {
		for _, topic := range sub.Sources {
			if !done[topic] {
				out = append(out, topic)
			}
		}
	}
	return out
}

// committedPast captures the ends of topics and waits until the group has committed them.
func (a *App) committedPast(ctx context.Context, topics []string) error {
	var internal, foreign []kafka.TopicPartition
	for _, name := range topics {
		topic := a.topics[task.RealTopic(a.topology, a.cfg.AppID, name)]
		for p := range topic.Partitions {
			tp := kafka.TopicPartition{Topic: topic.Name, Partition: p}
			if _, ok := a.topology.Internal(name); ok {
				internal = append(internal, tp)
			} else {
				foreign = append(foreign, tp)
			}
		}
	}
	ends, err := a.ends(ctx, kafka.HighWatermark, internal)
	if err != nil {
		return err
	}
	foreignEnds, err := a.stableEnds(ctx, foreign)
	if err != nil {
		return err
	}
	for tp, end := range foreignEnds {
		ends[tp] = end
	}
	return a.awaitCommitted(ctx, ends)
}

func (a *App) ends(ctx context.Context, spec kafka.OffsetSpec, tps []kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	if len(tps) == 0 {
		return map[kafka.TopicPartition]int64{}, nil
	}
	admin, err := a.liveAdmin()
	if err != nil {
		return nil, err
	}
	return admin.ListOffsets(ctx, spec, tps...)
}

// stableEnds gives the ends of topics that others write. For a moment after a commit the
// read_committed end is short of what was committed, so it is waited for until it reaches the
// high watermark; but an open transaction may keep it back for ever, so not for long.
func (a *App) stableEnds(ctx context.Context, tps []kafka.TopicPartition) (map[kafka.TopicPartition]int64, error) {
	high, err := a.ends(ctx, kafka.HighWatermark, tps)
	if err != nil {
		return nil, err
	}
	patience := time.Now().Add(a.cfg.TransactionTimeout)
	for {
		stable, err := a.ends(ctx, kafka.LastStable, tps)
		if err != nil {
			return nil, err
		}
		short := false
		for tp, end := range high {
			short = short || stable[tp] < end
		}
		if !short || time.Now().After(patience) {
			return stable, nil
		}
		if err := a.wait(ctx, a.Changed(), 10*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func (a *App) liveAdmin() (kafka.Admin, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.admin == nil {
		return nil, errors.Join(ErrNotRunning, a.err)
	}
	return a.admin, nil
}

// awaitTasks waits until this process runs its tasks, or knows that another one is to.
func (a *App) awaitTasks(ctx context.Context) error {
	var stood time.Time // since when this process has a place, and holds nothing
	for {
		a.mu.Lock()
		state, member, changed, err := a.state, a.member, a.changed, a.err
		a.mu.Unlock()
		if state != Starting || member == nil || !member.stands() {
			stood = time.Time{}
		} else if stood.IsZero() {
			stood = time.Now()
		}
		switch {
		case state == Running, state == Closing, !stood.IsZero() && time.Since(stood) > standsAlone && a.hasOthers(ctx):
			return nil
		case state == Closed || state == Failed:
			return errors.Join(ErrNotRunning, err)
		}
		if err := a.wait(ctx, changed, moment); err != nil {
			return err
		}
	}
}

// standsAlone is how long a process that has its place may take to be told what it holds. Most are told at once, so that nobody
// needs to be asked.
const standsAlone = time.Second

// hasOthers tells whether the group has another member. A client may know its membership a moment before it is told what it holds:
// alone in the group, this process is the one that is going to run the tasks.
func (a *App) hasOthers(ctx context.Context) bool {
	admin, err := a.liveAdmin()
	if err != nil {
		return false
	}
	g, err := admin.DescribeGroup(ctx, a.cfg.AppID)
	if err != nil {
		return kafka.IsClass(err, kafka.ClassUnauthorized) // who may not know it waits for the offsets alone
	}
	return len(g.Members) > 1
}

// awaitCommitted waits until the group's offsets have reached ends.
func (a *App) awaitCommitted(ctx context.Context, ends map[kafka.TopicPartition]int64) error {
	var open []kafka.TopicPartition
	for tp, end := range ends {
		if end > 0 {
			open = append(open, tp)
		}
	}
	for len(open) > 0 {
		admin, err := a.liveAdmin()
		if err != nil {
			return err
		}
		changed := a.Changed() // before the look: what comes after it wakes us
		got, err := admin.CommittedOffsets(ctx, a.cfg.AppID, open...)
		if err != nil {
			return err
		}
		left, failed := open[:0], a.failedSources()
		for _, tp := range open {
			if failed[tp] {
				continue
			}
			if o, ok := got[tp]; !ok || o.Offset < ends[tp] {
				left = append(left, tp)
			}
		}
		open = left
		if len(open) == 0 {
			return nil
		}
		if err := a.wait(ctx, changed, moment); err != nil {
			return fmt.Errorf("%w: %v is not committed up to offset %d", err, open[0], ends[open[0]])
		}
	}
	return nil
}

// moment is how long a wait for what other processes do takes at most before a new look.
const moment = 200 * time.Millisecond

// wait waits for a change here, or a moment: other processes do not tell us of theirs.
func (a *App) wait(ctx context.Context, changed <-chan struct{}, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-a.done:
		return errors.Join(ErrNotRunning, a.runError())
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
