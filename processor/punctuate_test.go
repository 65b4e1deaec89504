package processor_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
)

// ticker forwards records, and a tick at each punctuation.
type ticker struct {
	by    processor.PunctuationType
	every time.Duration
	setup func(ctx strCtx, tick processor.Punctuator) // replaces the one schedule
}

func (p *ticker) Init(ctx strCtx) error {
	tick := func(now time.Time) error {
		if _, ok := ctx.Metadata(); ok {
			return errors.New("there is no record in a punctuation")
		}
		return ctx.Forward(strRec{Key: "tick", Value: fmt.Sprint(now.UnixMilli()), Timestamp: now})
	}
	if p.setup != nil {
		p.setup(ctx, tick)
		return nil
	}
	ctx.Schedule(p.every, p.by, tick)
	return nil
}

func (p *ticker) Process(ctx strCtx, r strRec) error { return ctx.Forward(r) }

func newTicker(t *testing.T, p ticker) *rig {
	t.Helper()
	top := processor.NewTopology()
	source(top, "source", "in")
	processor.AddProcessor(top, "ticker", func() *ticker { c := p; return &c }, []string{"source"})
	sink(top, "sink", "out", "ticker")
	return newRig(t, top)
}

// ticks gives the times of the ticks since the last call.
func (r *rig) ticks() string {
	var all []string
	for _, o := range r.outputs {
		if at, ok := strings.CutPrefix(o, "out tick="); ok {
			all = append(all, at)
		}
	}
	r.outputs = nil
	return strings.Join(all, ",")
}

// TestStreamTimePunctuation is what Kafka Streams does with the same records: behind the
// record, the first with the first record, one for any jump, and on the grid that starts at 0.
func TestStreamTimePunctuation(t *testing.T) {
	for name, steps := range map[string][][2]int64{ // timestamp of the record, and of the tick behind it
		"from 0":     {{0, 0}, {5, -1}, {9, -1}, {10, 10}, {15, -1}, {39, 39}, {40, 40}, {41, -1}, {20, -1}, {49, -1}, {50, 50}, {1000, 1000}, {1001, -1}, {1010, 1010}},
		"late start": {{1003, 1003}, {1004, -1}, {1012, 1012}, {1013, -1}, {1014, -1}, {1023, 1023}},
		"far future": {{9_999_999_999_999, 9_999_999_999_999}, {10_000_000_000_000, 10_000_000_000_000}, {10_000_000_000_009, -1}, {math.MaxInt64 / 1_000_000 * 1000, math.MaxInt64 / 1_000_000 * 1000}},
		// There is no point behind the end of time.
		"end of time": {{math.MaxInt64 - 3, math.MaxInt64 - 3}, {math.MaxInt64 - 3, -1}, {math.MaxInt64, -1}, {7, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTicker(t, ticker{by: processor.StreamTime, every: 10 * time.Millisecond})
			for _, s := range steps {
				want := []string{fmt.Sprintf("out k=v @%d", s[0])}
				if s[1] >= 0 {
					want = append(want, fmt.Sprintf("out tick=%d @%d", s[1], s[1]))
				}
				r.mustSend("in", "k", "v", s[0])
				r.expect(want...)
			}
		})
	}
}

// TestWallClockPunctuation is what Kafka Streams does when its clock moves so.
func TestWallClockPunctuation(t *testing.T) {
	r := newTicker(t, ticker{by: processor.WallClockTime, every: 10 * time.Millisecond})
	start := r.now.UnixMilli()
	advance := func(ms int64) {
		r.now = r.now.Add(time.Duration(ms) * time.Millisecond)
		if err := r.in.PunctuateWallClock(r.now); err != nil {
			t.Fatal(err)
		}
	}
	if at, ok := r.in.NextWallClock(); !ok || at.UnixMilli() != start+10 {
		t.Error(at, ok)
	}
	for _, s := range [][3]int64{ // milliseconds, the tick, the next one
		{5, -1, 10}, {5, 10, 20}, {10, 20, 30}, {35, 55, 60}, {4, -1, 60}, {1, 60, 70}, {100, 160, 170}, {0, -1, 170}, {10, 170, 180}} {
		r.mustSend("in", "k", "v", 5000) // stream time does not matter
		r.outputs = nil
		advance(s[0])
		if s[1] < 0 {
			r.expect()
		} else {
			r.expect(fmt.Sprintf("out tick=%d @%d", start+s[1], start+s[1]))
		}
		if at, ok := r.in.NextWallClock(); !ok || at.UnixMilli() != start+s[2] {
			t.Errorf("after %v: next at %d, %v", s, at.UnixMilli()-start, ok)
		}
	}
}

func TestPunctuationsAreCancelled(t *testing.T) {
	const ms = time.Millisecond
	t.Run("by itself", func(t *testing.T) {
		r := newTicker(t, ticker{setup: func(ctx strCtx, tick processor.Punctuator) {
			var cancel func()
			n := 0
			cancel = ctx.Schedule(10*ms, processor.StreamTime, func(now time.Time) error {
				if n++; n == 2 {
					cancel()
				}
				return tick(now)
			})
		}})
		for ms := int64(0); ms < 100; ms += 10 {
			r.mustSend("in", "k", "v", ms)
		}
		if got := r.ticks(); got != "0 @0,10 @10" {
			t.Error(got)
		}
	})
	t.Run("by one that is due before it", func(t *testing.T) {
		r := newTicker(t, ticker{setup: func(ctx strCtx, tick processor.Punctuator) {
			cancel := func() {}
			ctx.Schedule(10*ms, processor.WallClockTime, func(now time.Time) error { cancel(); return nil })
			cancel = ctx.Schedule(20*ms, processor.WallClockTime, tick)
		}})
		r.now = r.now.Add(time.Second)
		if err := r.in.PunctuateWallClock(r.now); err != nil {
			t.Fatal(err)
		}
		if got := r.ticks(); got != "" {
			t.Error(got)
		}
	})
	t.Run("from outside", func(t *testing.T) {
		var cancel func()
		r := newTicker(t, ticker{setup: func(ctx strCtx, tick processor.Punctuator) {
			cancel = ctx.Schedule(10*ms, processor.WallClockTime, tick)
		}})
		cancel()
		cancel() // again does nothing
		if at, ok := r.in.NextWallClock(); ok {
			t.Error("still due at", at)
		}
	})
}

func TestPunctuationsRunInTheOrderOfTheirTimes(t *testing.T) {
	const ms = time.Millisecond
	r := newTicker(t, ticker{setup: func(ctx strCtx, tick processor.Punctuator) {
		named := func(name string) processor.Punctuator {
			return func(now time.Time) error {
				return ctx.Forward(strRec{Key: "tick", Value: name, Timestamp: now})
			}
		}
		ctx.Schedule(30*ms, processor.WallClockTime, named("late"))
		ctx.Schedule(10*ms, processor.WallClockTime, named("early"))
		ctx.Schedule(10*ms, processor.StreamTime, named("other clock"))
		ctx.Schedule(10*ms, processor.WallClockTime, named("second"))
	}})
	r.now = r.now.Add(40 * ms)
	if err := r.in.PunctuateWallClock(r.now); err != nil {
		t.Fatal(err)
	}
	if got := r.ticks(); got != "early @1000040,second @1000040,late @1000040" {
		t.Error(got)
	}
}

// TestPunctuatorThatReplacesItself must end: the first point by stream time is always past.
func TestPunctuatorThatReplacesItself(t *testing.T) {
	r := newTicker(t, ticker{setup: func(ctx strCtx, tick processor.Punctuator) {
		cancel := func() {}
		var again processor.Punctuator
		again = func(now time.Time) error {
			cancel()
			cancel = ctx.Schedule(0, processor.StreamTime, again) // 0 counts as a millisecond
			return tick(now)
		}
		cancel = ctx.Schedule(time.Microsecond, processor.StreamTime, again)
	}})
	r.mustSend("in", "k", "v", 7)
	r.mustSend("in", "k", "v", 7)
	if got := r.ticks(); got != "7 @7,7 @7" {
		t.Error(got)
	}
}

func TestPunctuatorFails(t *testing.T) {
	broken := errors.New("broken")
	for _, by := range []processor.PunctuationType{processor.StreamTime, processor.WallClockTime} {
		r := newTicker(t, ticker{setup: func(ctx strCtx, _ processor.Punctuator) {
			ctx.Schedule(time.Millisecond, by, func(time.Time) error { return broken })
		}})
		err := r.send("in", []byte("k"), []byte("v"), 5)
		if by == processor.WallClockTime {
			err = r.in.PunctuateWallClock(r.now.Add(time.Second))
		}
		if !errors.Is(err, broken) || err.Error() != "punctuate processor ticker: broken" || r.in.At() != "ticker" {
			t.Errorf("%v at %s", err, r.in.At())
		}
	}
}

// TestPunctuatorWritesWithItsTime: a write of a punctuator goes to the changelog with the
// punctuation's time.
func TestPunctuatorWritesWithItsTime(t *testing.T) {
	top := processor.NewTopology()
	source(top, "source", "in")
	processor.AddProcessor(top, "p", func() *ticker {
		return &ticker{setup: func(ctx strCtx, _ processor.Punctuator) {
			ctx.Schedule(time.Millisecond, processor.StreamTime, func(time.Time) error { return plain.In(ctx).Put("k", 1) })
		}}
	}, []string{"source"}, plain)
	r := newRig(t, top)
	r.mustSend("in", "k", "v", 900)
	r.mustSend("in", "k", "v", 100)
	if got := changes(t, r.store); got != "k 900" {
		t.Error(got)
	}
}
