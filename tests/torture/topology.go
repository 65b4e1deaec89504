package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// names of topics and stores of one run; the application id is their prefix.
type names struct{ app string }

func (n names) in() string      { return n.app + ".in" }
func (n names) ledgers() string { return n.app + ".ledgers" }
func (n names) tallies() string { return n.app + ".tallies" }

// partitions of the input, and so of everything.
const partitions = 3

// Stores of different kinds, with the same records. What they keep lasts longer than a run.
var (
	ledgerStore  = processor.KeyValue("ledger", serde.String, serde.String)
	latestStore  = processor.TimestampedKeyValue("latest", serde.String, serde.String)
	visitsStore  = processor.Window("visits", serde.String, serde.String, slot, kept)
	historyStore = processor.Versioned("history", serde.String, serde.String, kept)
	tallyStore   = processor.TimestampedKeyValue("tally", serde.String, serde.String)
)

const (
	// slot is the length of a window, and how far apart versions are.
	slot = 2 * time.Second
	// kept is long enough for a broker, to which the records' timestamps are soon after 1970.
	kept = 80 * 365 * 24 * time.Hour
)

// slotOf gives the start of the slot of a timestamp, in Unix milliseconds.
func slotOf(ms int64) int64 { return ms - ms%slot.Milliseconds() }

// newTopology is the application: a ledger for each key, whose lines are written out and, by
// group, through a repartition topic to a tally. With a single store it is the ledger alone.
func newTopology(n names, single bool) (*streams.Topology, error) {
	both := streams.With(serde.String, serde.String)
	b := streams.NewBuilder()
	in := streams.Stream(b, n.in(), both)
	if single {
		streams.Process(in, newLedger, both, ledgerStore).To(n.ledgers())
		return b.Build()
	}
	ledgers := streams.Process(in, newShelf, both, ledgerStore, latestStore, visitsStore, historyStore)
	ledgers.To(n.ledgers())
	grouped := streams.SelectKey(ledgers, func(_, line string) string { return groupOf(line) }, serde.String)
	streams.Process(grouped.Repartition(streams.Repartitioned{Name: "groups"}), newTally, both, tallyStore).To(n.tallies())
	return b.Build()
}

// A line of the ledger: who wrote it, the input record, how many records of the key there were
// since it was deleted, a chain of hashes over them, and the stream time.
//
//	life partition offset count chain time
//
// All but the life depend on the input alone.

func groupOf(line string) string {
	if f := strings.Fields(line); len(f) == 6 {
		return f[4][:1]
	}
	return "?"
}

// chain adds a value to a chain of hashes.
func chain(before, value string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(before + "/" + value)) // it never fails
	return fmt.Sprintf("%016x", h.Sum64())
}

// life names one running copy of a processor, in this process or any other: a start of the
// process, a number, and when it began.
var lives atomic.Int64

func newLife() string {
	return fmt.Sprintf("%s.%d.%d", runName, lives.Add(1), time.Now().UnixMilli())
}

type ledger struct {
	life *string
	// shelf: the other stores are there too.
	shelf bool
}

func newLedger() ledger { return ledger{life: new(string)} }
func newShelf() ledger  { return ledger{new(string), true} }

// Init begins a life.
func (l ledger) Init(processor.Context[string, string]) error {
	*l.life = newLife()
	return nil
}

// Process adds a record to the ledger of its key; one with a null value ends the ledger.
func (l ledger) Process(ctx processor.Context[string, string], r processor.Record[string, string]) error {
	m, ok := ctx.Metadata()
	if !ok {
		return errors.New("a record without metadata")
	}
	book := ledgerStore.In(ctx)
	entry, _, err := book.Get(r.Key)
	if err != nil {
		return err
	}
	count, before, _ := strings.Cut(entry, " ")
	n, _ := strconv.Atoi(count)
	next := "-"
	if r.HasValue() {
		n++
		next = chain(before, r.Value)
		err = book.Put(r.Key, fmt.Sprint(n, " ", next))
	} else {
		n = 0
		_, _, err = book.Delete(r.Key)
	}
	if err != nil {
		return err
	}
	if l.shelf {
		if err := keep(ctx, r, next); err != nil {
			return err
		}
	}
	r = processor.WithValue(r, fmt.Sprintf("%s %d %d %d %s %d", *l.life, m.Partition, m.Offset, n, next, ctx.StreamTime().UnixMilli()))
	return ctx.Forward(r)
}

// keep writes a line's hash into the stores of other kinds; "-", the end of a ledger, deletes.
func keep(ctx processor.Context[string, string], r processor.Record[string, string], hash string) error {
	at := time.UnixMilli(slotOf(r.Timestamp.UnixMilli()))
	err := latestStore.In(ctx).Put(hash[:1], r.Key, r.Timestamp)
	if hash == "-" {
		_, err2 := historyStore.In(ctx).PutNull(r.Key, at)
		return errors.Join(err, err2, visitsStore.In(ctx).Delete(r.Key, at))
	}
	_, err2 := historyStore.In(ctx).Put(r.Key, hash, at)
	return errors.Join(err, err2, visitsStore.In(ctx).Put(r.Key, hash, at))
}

// tally counts the lines of each group. What it keeps and writes does not depend on the order in
// which they come:
//
//	life partition offset count sum
type tally struct{ life *string }

func newTally() tally { return tally{new(string)} }

// Init begins a life.
func (t tally) Init(processor.Context[string, string]) error {
	*t.life = newLife()
	return nil
}

// Process counts a line.
func (t tally) Process(ctx processor.Context[string, string], r processor.Record[string, string]) error {
	m, ok := ctx.Metadata()
	if !ok {
		return errors.New("a record without metadata")
	}
	s := tallyStore.In(ctx)
	entry, _, _, err := s.Get(r.Key)
	if err != nil {
		return err
	}
	_, line, _ := strings.Cut(r.Value, " ") // without the life
	entry = addToTally(entry, line)
	if err := s.Put(r.Key, entry, r.Timestamp); err != nil {
		return err
	}
	return ctx.Forward(processor.WithValue(r, fmt.Sprintf("%s %d %d %s", *t.life, m.Partition, m.Offset, entry)))
}

// addToTally adds one to the count and a line's hash to the sum.
func addToTally(entry, line string) string {
	count, sum, _ := strings.Cut(entry, " ")
	n, _ := strconv.Atoi(count)
	h := fnv.New64a()
	_, _ = h.Write([]byte(line)) // it never fails
	total, _ := strconv.ParseUint(sum, 16, 64)
	return fmt.Sprintf("%d %x", n+1, total+h.Sum64())
}
