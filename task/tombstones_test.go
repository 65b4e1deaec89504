package task

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
)

// configured is an admin of topics with a delete.retention.ms.
type configured struct {
	kafka.Admin
	value string
	err   error
}

func (a configured) TopicConfigs(context.Context, string) (map[string]string, error) {
	if a.value == "" {
		return map[string]string{}, a.err
	}
	return map[string]string{"delete.retention.ms": a.value}, a.err
}

// A store that is to go on from its offset after tombstones may have gone begins anew instead.
func TestTombstonesMayBeGone(t *testing.T) {
	denied := &kafka.Error{Class: kafka.ClassUnauthorized, Op: "describe configs"}
	for name, c := range map[string]struct {
		admin   configured
		age     time.Duration
		prepare func(p *plan)
		clear   bool
	}{
		"young":              {configured{value: "60000"}, 59 * time.Second, nil, false},
		"old":                {configured{value: "60000"}, 62 * time.Second, nil, true},
		"kept for ever":      {configured{value: "9223372036854775807"}, 1000 * time.Hour, nil, false},
		"default":            {configured{}, 23 * time.Hour, nil, false},
		"older than default": {configured{}, 25 * time.Hour, nil, true},
		"may not know":       {configured{err: denied}, 23 * time.Hour, nil, false},
		"may not know, old":  {configured{err: denied}, 25 * time.Hour, nil, true},
		"nothing to restore": {configured{value: "1"}, time.Hour, func(p *plan) { p.stores[0].status.Next = p.stores[0].status.End }, false},
		"from the start":     {configured{value: "1"}, time.Hour, func(p *plan) { p.stores[0].from = statestore.Offset{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRestoring(t)
			r.w.cfg.Admin = c.admin
			r.w.now = func() time.Time { return r.task.store.CaughtUpAt().Add(c.age) }
			if c.prepare != nil {
				c.prepare(r.plan)
			}
			s := r.plan.stores[0]
			if err := r.w.guardTombstones(t.Context(), r.plan, map[kafka.TopicPartition]int64{s.tp: 7}); err != nil {
				t.Fatal(err)
			}
			if s.clear != c.clear || c.clear && (s.status.Next != 7 || s.status.From != 7 || !strings.Contains(s.why, "delete.retention.ms")) {
				t.Errorf("clear %v (%s), restore %+v", s.clear, s.why, s.status)
			}
		})
	}
	r := newRestoring(t)
	r.w.cfg.Admin = configured{value: "soon"}
	if err := r.w.guardTombstones(t.Context(), r.plan, nil); err == nil || !strings.Contains(err.Error(), "app-counts-changelog") {
		t.Errorf("%v", err)
	}
}

// The bound of a store that was imported is the time of the data, and that of no other: the directory is new.
func TestTombstonesOfImportedData(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		data  time.Time
		clear bool
	}{
		"young":   {now.Add(-59 * time.Minute), false},
		"old":     {now.Add(-61 * time.Minute), true},
		"unknown": {time.Time{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRestoring(t)
			fresh := newWorld(t)
			fresh.task.cfg = r.task.cfg
			if err := fresh.task.store.RecordImport(statestore.Import{Store: "counts", Source: "old", Time: now, Data: c.data}, statestore.At(50), nil); err != nil {
				t.Fatal(err)
			}
			for _, tp := range []kafka.TopicPartition{inA, inB} { // of Kafka Streams
				fresh.group[tp] = kafka.CommittedOffset{TopicPartition: tp, Offset: 9, Metadata: "AQAAAAAAAAEC"}
			}
			p := fresh.compare()
			tp := p.stores[0].tp
			starts := map[kafka.TopicPartition]int64{tp: 7}
			if err := p.bound(starts, map[kafka.TopicPartition]int64{tp: 60}); err != nil {
				t.Fatal(err)
			}
			r.w.cfg.Admin, r.w.now = configured{value: "3600000"}, func() time.Time { return now }
			if err := r.w.guardTombstones(t.Context(), p, starts); err != nil {
				t.Fatal(err)
			}
			want := map[bool]int64{true: 7, false: 50}[c.clear]
			if s := p.stores[0]; s.clear != c.clear || s.status.Next != want || s.status.From != want {
				t.Errorf("clear %v (%s), restore %+v", s.clear, s.why, s.status)
			}
		})
	}
}
