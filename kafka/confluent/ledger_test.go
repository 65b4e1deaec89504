//go:build cgo

package confluent

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
)

// A game plays librdkafka for a ledger: it takes random Sends and gives their records fates
// in the order that librdkafka keeps, successes of a partition in order, failures whenever
// they like.
type game struct {
	t       *testing.T
	rng     *rand.Rand
	ledger  *ledger
	failing bool

	sends    int
	waiting  map[kafka.TopicPartition][]int // the Sends of the records without a fate
	end      map[kafka.TopicPartition]int64
	reported map[int]kafka.Delivery
	lost     map[int]bool                           // Sends of which a record was not written
	next     map[int]map[kafka.TopicPartition]int64 // what a Send's report must say
}

func newGame(t *testing.T, rng *rand.Rand) *game {
	return &game{t: t, rng: rng, ledger: newLedger(), failing: rng.IntN(2) == 0, waiting: map[kafka.TopicPartition][]int{},
		end: map[kafka.TopicPartition]int64{}, reported: map[int]kafka.Delivery{}, lost: map[int]bool{},
		next: map[int]map[kafka.TopicPartition]int64{}}
}

// send enters one Send; sometimes librdkafka takes only some of its records.
func (g *game) send() {
	id := g.sends
	g.sends++
	g.next[id] = map[kafka.TopicPartition]int64{}
	records := make([]kafka.Record, g.rng.IntN(5)+1)
	for i := range records {
		records[i] = kafka.Record{Topic: "t", Partition: int32(g.rng.IntN(3))}
	}
	s, err := g.ledger.enter(records, func(d kafka.Delivery) {
		if _, twice := g.reported[id]; twice {
			g.t.Fatalf("send %d was reported twice", id)
		}
		d.Next = append([]kafka.PartitionOffset(nil), d.Next...)
		g.reported[id] = d
	})
	must(g.t, err)
	taken := len(records)
	if g.failing && g.rng.IntN(4) == 0 {
		taken = g.rng.IntN(len(records))
	}
	for i := range records[:taken] {
		tp := records[i].TopicPartition()
		g.waiting[tp] = append(g.waiting[tp], id)
	}
	if taken < len(records) {
		g.lost[id] = true
		g.report(g.ledger.refuse(s, records[taken:], errors.New("full")))
	}
}

func (g *game) report(ended *send) {
	if ended != nil {
		g.ledger.report(ended)
	}
}

// fate gives one record its fate, and tells whether there was one to give.
func (g *game) fate() bool {
	for _, partition := range g.rng.Perm(3) {
		tp := kafka.TopicPartition{Topic: "t", Partition: int32(partition)}
		queue := g.waiting[tp]
		if len(queue) == 0 {
			continue
		}
		at, offset := 0, g.end[tp]
		var err error
		if g.failing && g.rng.IntN(3) == 0 {
			at, offset, err = g.rng.IntN(len(queue)), -1, errors.New("timed out")
		}
		id := queue[at]
		g.waiting[tp] = append(queue[:at:at], queue[at+1:]...)
		if err == nil {
			g.end[tp]++
			g.next[id][tp] = offset + 1
		} else {
			g.lost[id] = true
		}
		g.ledger.mu.Lock()
		ended := g.ledger.delivered(tp.Topic, tp.Partition, offset, err)
		g.ledger.mu.Unlock()
		g.report(ended)
		return true
	}
	return false
}

// over closes the ledger and checks every report.
func (g *game) over() {
	for _, queue := range g.waiting {
		for _, id := range queue {
			g.lost[id] = true
		}
	}
	g.ledger.close(errors.New("closed"))
	select {
	case <-g.ledger.waitIdle():
	default:
		g.t.Fatal("the closed ledger is not idle")
	}
	for id := range g.sends {
		d, ok := g.reported[id]
		switch {
		case !ok:
			g.t.Fatalf("send %d of %d was not reported", id, g.sends)
		case g.lost[id] && d.Err == nil:
			g.t.Fatalf("send %d lost a record and was reported as delivered", id)
		case !g.failing && !g.lost[id] && d.Err != nil:
			g.t.Fatalf("send %d was delivered, but reported with %v", id, d.Err)
		}
		if g.failing || g.lost[id] {
			continue
		}
		for _, n := range d.Next {
			if n.Offset != g.next[id][n.TopicPartition] {
				g.t.Fatalf("send %d: next of %s is %d, want %d", id, n.TopicPartition, n.Offset, g.next[id][n.TopicPartition])
			}
		}
	}
	if g.ledger.outstanding != 0 {
		g.t.Fatalf("%d records are still on the books", g.ledger.outstanding)
	}
	if _, err := g.ledger.enter([]kafka.Record{{Topic: "t"}}, nil); err == nil {
		g.t.Fatal("a closed ledger took a record")
	}
}

func TestLedgerNeverReportsALostRecordAsDelivered(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		g := newGame(t, rng)
		for range rng.IntN(60) {
			if rng.IntN(3) == 0 {
				g.send()
			} else {
				g.fate()
			}
		}
		if rng.IntN(2) == 0 { // else the ledger is closed with records that wait
			for g.fate() {
			}
		}
		g.over()
	}
}

func TestLedgerBound(t *testing.T) {
	l := newLedger()
	if !l.fits(1000, 10) {
		t.Error("more than the bound does not fit into an empty ledger: it would wait for ever")
	}
	if _, err := l.enter(make([]kafka.Record, 8), nil); err != nil {
		t.Fatal(err)
	}
	if !l.fits(2, 10) || l.fits(3, 10) {
		t.Error("with 8 of 10 taken, 2 fit and 3 do not")
	}
}

func TestLedgerWithoutOffset(t *testing.T) {
	l := newLedger()
	var got kafka.Delivery
	if _, err := l.enter([]kafka.Record{{Topic: "t"}, {Topic: "t"}}, func(d kafka.Delivery) { got = d }); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.delivered("t", 0, 5, nil)
	ended := l.delivered("t", 0, -1, nil) // acknowledged as a duplicate
	l.mu.Unlock()
	l.report(ended)
	if !kafka.IsClass(got.Err, kafka.ClassRetriable) {
		t.Errorf("a delivery without its last offset was reported as %+v", got)
	}
}
