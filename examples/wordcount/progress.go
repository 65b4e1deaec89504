package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/streams"
)

// progress shows what an application does, from its status.
type progress struct {
	app    *streams.App
	lines  *producer
	show   *display
	o      options
	before map[kafka.TopicPartition]int64 // the ends of the inputs before the start

	found     bool // what the run found is printed
	processed int64
	at        time.Time
	rate      float64

	stop, stopped chan struct{}
}

func startProgress(app *streams.App, lines *producer, show *display, o options, before map[kafka.TopicPartition]int64) *progress {
	p := &progress{app: app, lines: lines, show: show, o: o, before: before, at: time.Now(), stop: make(chan struct{}), stopped: make(chan struct{})}
	go p.run()
	return p
}

// close shows the last state, and leaves it standing.
func (p *progress) close() {
	close(p.stop)
	<-p.stopped
	p.show.close()
}

func (p *progress) run() {
	defer close(p.stopped)
	tick := time.NewTicker(p.interval())
	defer tick.Stop()
	for {
		changed := p.app.Changed()
		status := p.app.Status()
		if !p.found && isTakenOver(status) {
			p.found = true
			reportFound(p.show, p.o.app, status, p.before)
		}
		if p.found {
			changed = nil // nothing to see at once any more
		}
		select {
		case <-changed:
		case <-tick.C:
			p.update(status)
		case <-p.stop:
			p.update(p.app.Status())
			return
		}
	}
}

func (p *progress) interval() time.Duration {
	switch {
	case p.o.progress > 0:
		return p.o.progress
	case p.show.terminal:
		return 200 * time.Millisecond
	}
	return time.Second
}

func (p *progress) update(s streams.Status) {
	if restoring := restoreProgress(s); s.State == streams.Restoring && restoring != "" {
		p.show.update(restoring)
		return
	}
	t := totalsOf(s)
	if passed := time.Since(p.at); passed > p.interval()/2 { // the ticks of a busy machine come in bunches
		p.rate = float64(max(t.processed-p.processed, 0)) / passed.Seconds() // less after a restart of the workers
		p.processed, p.at = t.processed, time.Now()
	}
	committed, all := p.lines.committed.Load(), p.lines.total.Load()
	p.show.update(fmt.Sprintf("%-9s %s records, %s/s; lines produced %s/%s; committed %s; changelog @%s",
		s.State, grouped(t.processed), grouped(int64(p.rate)), grouped(committed), grouped(max(all, committed)), p.commits(t), grouped(t.changelog)))
}

// totals are sums over tasks and partitions.
type totals struct {
	processed int64
	committed map[string]int64 // offsets, by topic
	changelog int64            // offsets of the store
}

func totalsOf(s streams.Status) totals {
	t := totals{committed: map[string]int64{}}
	for _, w := range s.Workers {
		t.processed += w.Processed
		for _, task := range w.Tasks {
			for tp, offset := range task.Committed {
				t.committed[tp.Topic] += offset
			}
			for _, offset := range task.Changelog {
				next, _ := offset.Next() // none yet: 0
				t.changelog += next
			}
		}
	}
	return t
}

func (p *progress) commits(t totals) string {
	var parts []string
	for _, topic := range sortedKeys(t.committed) {
		parts = append(parts, fmt.Sprintf("%s@%s", short(p.o.app, topic), grouped(t.committed[topic])))
	}
	return strings.Join(parts, " ")
}

// short is a topic's name without that of the application.
func short(app, topic string) string { return strings.TrimLeft(strings.TrimPrefix(topic, app), "-.") }

// restoreProgress tells how far a restore is; empty when nothing is restored.
func restoreProgress(s streams.Status) string {
	var done, all, records int64
	for _, w := range s.Workers {
		for _, task := range w.Tasks {
			for _, r := range task.Restore {
				done += r.Next - r.From
				all += r.End - r.From
				records += r.Records
			}
		}
	}
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("%-9s %s records, %s of %s changelog offsets (%d %%)", s.State, grouped(records), grouped(done), grouped(all), 100*done/all)
}
