package embedded

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
)

// give hands offsets to a partition in a row, as Process does, and says which are processed.
func give(p *part, position int64, offsets ...int64) (done []int64) {
	for _, offset := range offsets {
		switch {
		case p.state != here:
			p.passed(offset)
		case offset < position:
			p.admits(offset)
		case p.admits(offset):
			p.last, position = offset, offset+1
			done = append(done, offset)
		}
	}
	return done
}

// What was dropped or passed over comes again before anything behind it is taken (E1).
func TestOrderIsKept(t *testing.T) {
	fresh := func() *part { return &part{last: -1, fence: -1, refused: -1} }
	at := func(position int64) *part { p := fresh(); p.begin(position); return p }
	rewound := func() *part { // 10 to 15 were processed, then dropped down to 10
		p := at(10)
		give(p, 10, 10, 11, 12, 13, 14, 15)
		p.begin(10)
		return p
	}
	restored := func() *part { // what the client had in hand came during the restore
		p := fresh()
		give(p, 0, 4, 5, 6)
		p.begin(3)
		return p
	}
	for _, x := range []struct {
		name     string
		p        *part
		position int64
		given    []int64
		want     []int64
	}{
		{"in order, with a hole", at(5), 5, []int64{5, 6, 9, 10}, []int64{5, 6, 9, 10}},
		{"what the state holds is left out", at(5), 5, []int64{3, 4, 5}, []int64{5}},
		{"the rest of a batch after a rewind", rewound(), 10, []int64{16, 17, 10, 11, 12, 13, 14, 15, 16, 17, 18}, []int64{10, 11, 12, 13, 14, 15, 16, 17, 18}},
		{"nothing in hand after a rewind", rewound(), 10, []int64{10, 12}, []int64{10, 12}},
		{"the dropped records were compacted away", rewound(), 10, []int64{20, 21, 20, 21}, []int64{20, 21}},
		{"in hand since the restore", restored(), 3, []int64{7, 8, 3, 4}, []int64{3, 4}},
		{"begun behind what was in hand", func() *part { p := fresh(); give(p, 0, 1, 2); p.begin(9); return p }(), 9, []int64{9}, []int64{9}},
	} {
		if got := give(x.p, x.position, x.given...); !slices.Equal(got, x.want) {
			t.Errorf("%s: of %v it processes %v, want %v", x.name, x.given, got, x.want)
		}
	}
}

// An input that stays without the others of its task would not be processed by anyone: the host says so. A partition that it
// never had is nothing to it.
func TestTaskTakenInPart(t *testing.T) {
	tp := func(topic string, n int32) kafka.TopicPartition {
		return kafka.TopicPartition{Topic: topic, Partition: n}
	}
	h := &Host{log: slog.New(slog.DiscardHandler), mu: newTurn(), inputs: []string{"a", "b"}, parts: map[kafka.TopicPartition]*part{}}
	h.cfg.defaults()
	h.life, h.end = context.WithCancel(t.Context())
	h.open, h.well, h.unwell = h.life, h.life, h.end
	h.commitLife.Store(h.newCommitLife())
	defer h.end()
	for _, topic := range h.inputs {
		for n := range int32(2) {
			h.parts[tp(topic, n)] = &part{state: here}
			h.board.mark(tp(topic, n), true)
		}
	}
	if err := h.Revoked([]kafka.TopicPartition{tp("a", 0), tp("b", 0), tp("c", 9)}); err != nil || h.Err() != nil {
		t.Fatal(err, h.Err())
	}
	h.byHand.Store(true)
	h.left(nil, []kafka.TopicPartition{tp("c", 9)})
	if ready := h.Ready(); len(ready) != 2 || ready[0].Partition != 1 {
		t.Error(ready)
	}
	if err := h.Lost([]kafka.TopicPartition{tp("a", 1)}); err != nil || h.Err() == nil || !strings.Contains(h.Err().Error(), "a-1 was taken away, b-1 was not") {
		t.Error(err, h.Err())
	}
}
