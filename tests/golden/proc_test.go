package golden

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
)

type (
	ctx = processor.Context[any, any]
	rec = processor.Record[any, any]
)

// runner is a processor of a case.
type runner struct {
	proc
	store   node // of the processor's store
	init    func(ctx) error
	process func(ctx, rec) error
}

func (r *runner) Init(c ctx) error {
	if r.init == nil {
		return nil
	}
	return r.init(c)
}

func (r *runner) Process(c ctx, x rec) error { return r.process(c, x) }

func newProc(p proc, stores map[string]store) func() *runner {
	make := func() *runner {
		r := &runner{proc: p, store: stores[p.Store].node}
		r.wire()
		return r
	}
	make() // to find out whether it exists
	return make
}

func (r *runner) wire() {
	switch r.Fn {
	case "pass":
		r.process = ctx.Forward
	case "rmwSum":
		r.process = r.rmwSum
	case "dedup":
		r.process = r.dedup
	case "buffer":
		r.init, r.process = r.scheduled(r.flush), r.buffer
	case "ttl":
		r.init, r.process = r.scheduled(r.expire), r.ttl
	case "tick":
		r.init, r.process = r.tick, ctx.Forward
	case "scan":
		r.process = r.scan
	case "route":
		r.process = r.route
	case "fan":
		r.process = fan
	case "retime":
		r.process = r.retime
	case "addHeader", "dropHeader":
		r.process = r.header
	case "showHeaders":
		r.process = showHeaders
	case "meta":
		r.process = meta
	case "clock":
		r.process = clock
	case "fail":
		r.process = fail
	case "windowPut":
		r.process = r.windowPut
	case "sessionPut":
		r.process = r.sessionPut
	case "versionedPut":
		r.process = r.versionedPut
	default:
		panic(unsupported{"processor " + r.Fn})
	}
}

func value(r rec, v any) rec { r.Value = v; return r }

func (r *runner) rmwSum(c ctx, x rec) error {
	if x.Key == nil {
		return nil
	}
	s := keyValue(r.Store).In(c)
	old, ok, err := s.Get(x.Key)
	if err != nil {
		return err
	}
	if x.Value == nil {
		if _, _, err := s.Delete(x.Key); err != nil {
			return err
		}
		if !ok {
			return c.Forward(value(x, "none"))
		}
		return c.Forward(value(x, "deleted "+text(old)))
	}
	sum := num(old) + num(x.Value)
	if err := s.Put(x.Key, sum); err != nil {
		return err
	}
	return c.Forward(value(x, sum))
}

func (r *runner) dedup(c ctx, x rec) error {
	if x.Key == nil || x.Value == nil {
		return nil
	}
	_, seen, err := keyValue(r.Store).In(c).PutIfAbsent(x.Key, x.Value)
	if seen || err != nil {
		return err
	}
	return c.Forward(x)
}

func (r *runner) scheduled(f func(c ctx, now time.Time) error) func(ctx) error {
	by := processor.StreamTime
	if r.Clock == "wall" {
		by = processor.WallClockTime
	}
	return func(c ctx) error {
		c.Schedule(time.Duration(r.Every)*time.Millisecond, by, func(now time.Time) error { return f(c, now) })
		return nil
	}
}

func (r *runner) buffer(c ctx, x rec) error {
	if x.Key == nil {
		return nil
	}
	return keyValue(r.Store).In(c).Put(x.Key, x.Value)
}

func (r *runner) flush(c ctx, now time.Time) error {
	s := keyValue(r.Store).In(c)
	for e, err := range s.All() {
		if err != nil {
			return err
		}
		if err := c.Forward(rec{Key: e.Key, Value: e.Value, Timestamp: now}); err != nil {
			return err
		}
		if _, _, err := s.Delete(e.Key); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) ttl(c ctx, x rec) error {
	if x.Key == nil {
		return nil
	}
	if err := timestamped(r.Store).In(c).Put(x.Key, x.Value, x.Timestamp); err != nil {
		return err
	}
	return c.Forward(x)
}

func (r *runner) expire(c ctx, now time.Time) error {
	s := timestamped(r.Store).In(c)
	for e, err := range s.All() {
		if err != nil {
			return err
		}
		if e.Timestamp.UnixMilli() > now.UnixMilli()-r.TTL {
			continue
		}
		if err := s.Delete(e.Key, now); err != nil {
			return err
		}
		if err := c.Forward(rec{Key: e.Key, Timestamp: now}); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) tick(c ctx) error {
	by := processor.StreamTime
	if r.Clock == "wall" {
		by = processor.WallClockTime
	}
	n := 0
	var cancel func()
	cancel = c.Schedule(time.Duration(r.Every)*time.Millisecond, by, func(now time.Time) error {
		if n++; n == r.Times {
			cancel()
		}
		return c.Forward(rec{Key: "tick", Value: text(now.UnixMilli()), Timestamp: now})
	})
	return nil
}

func (r *runner) scan(c ctx, x rec) error {
	s := keyValue(r.Store).In(c)
	if x.Key != nil {
		if err := s.Put(x.Key, x.Value); err != nil {
			return err
		}
	}
	entries := s.All()
	if r.Lo != nil && r.Hi != nil { // the end of a range is exclusive here
		entries = s.Range(*r.Lo, *r.Hi+"\x00")
	}
	var rows []string
	for e, err := range entries {
		if err != nil {
			return err
		}
		if k := text(e.Key); (r.Lo == nil || k >= *r.Lo) && (r.Hi == nil || k <= *r.Hi) {
			rows = append(rows, k+"="+text(e.Value))
		}
	}
	if r.Reverse {
		slices.Reverse(rows)
	}
	return c.Forward(value(x, strings.Join(rows, " ")))
}

func (r *runner) route(c ctx, x rec) error {
	k := text(x.Key)
	if strings.HasPrefix(k, "*") {
		return c.Forward(x)
	}
	for _, to := range r.Routes {
		if !strings.HasPrefix(k, to.Prefix) {
			continue
		}
		if err := c.ForwardTo(to.To, x); err != nil {
			return err
		}
	}
	return nil
}

func fan(c ctx, x rec) error {
	v := text(x.Value)
	if err := c.Forward(value(x, v+".1")); err != nil {
		return err
	}
	x.Timestamp = x.Timestamp.Add(time.Millisecond)
	return c.Forward(value(x, v+".2"))
}

func (r *runner) retime(c ctx, x rec) error {
	x.Timestamp = time.UnixMilli(max(0, x.Timestamp.UnixMilli()+r.By))
	return c.Forward(x)
}

func (r *runner) header(c ctx, x rec) error {
	if r.Fn == "addHeader" {
		x.Headers = append(slices.Clip(x.Headers), kafka.Header{Key: r.Name, Value: []byte(r.Value)})
	} else {
		x.Headers = slices.DeleteFunc(slices.Clone(x.Headers), func(h kafka.Header) bool { return h.Key == r.Name })
	}
	return c.Forward(x)
}

func showHeaders(c ctx, x rec) error {
	var all []string
	for _, h := range x.Headers {
		all = append(all, h.Key+"="+string(h.Value))
	}
	return c.Forward(value(x, text(x.Value)+"{"+strings.Join(all, ";")+"}"))
}

// meta: what a punctuation forwards has metadata of no topic in Kafka Streams, and none here.
func meta(c ctx, x rec) error {
	m, ok := c.Metadata()
	if !ok {
		return c.Forward(value(x, "null/-1/-1"))
	}
	return c.Forward(value(x, fmt.Sprintf("%s/%d/%d", m.Topic, m.Partition, m.Offset)))
}

func clock(c ctx, x rec) error {
	return c.Forward(value(x, fmt.Sprintf("%d/%d", c.StreamTime().UnixMilli(), c.Now().UnixMilli())))
}

// around gives the times from span before to span after t.
func (r *runner) around(t time.Time) (from, to time.Time) {
	return time.UnixMilli(max(0, t.UnixMilli()-r.Span)), time.UnixMilli(t.UnixMilli() + r.Span)
}

func (r *runner) windowPut(c ctx, x rec) error {
	s := windowStore(r.store).In(c)
	if err := s.Put(x.Key, x.Value, x.Timestamp); err != nil {
		return err
	}
	var found []string
	from, to := r.around(x.Timestamp)
	for e, err := range s.Fetch(x.Key, from, to) {
		if err != nil {
			return err
		}
		found = append(found, fmt.Sprintf("%d=%s", e.Start.UnixMilli(), text(e.Value)))
	}
	return c.Forward(value(x, strings.Join(found, " ")))
}

func (r *runner) sessionPut(c ctx, x rec) error {
	s := sessionStore(r.store).In(c)
	if err := s.Put(x.Key, x.Value, x.Timestamp, time.UnixMilli(x.Timestamp.UnixMilli()+num(head(x.Value)))); err != nil {
		return err
	}
	var found []string
	from, to := time.UnixMilli(x.Timestamp.UnixMilli()-r.Span), time.UnixMilli(x.Timestamp.UnixMilli()+r.Span)
	for e, err := range s.Find(x.Key, from, to) {
		if err != nil {
			return err
		}
		found = append(found, fmt.Sprintf("%s@%d/%d=%s", text(e.Key), e.Start.UnixMilli(), e.End.UnixMilli(), text(e.Value)))
	}
	return c.Forward(value(x, strings.Join(found, " ")))
}

// versionedPut does not show until when a version was valid: Kafka Streams' stores, as processors
// see them, leave that out of what they give as of a time.
func (r *runner) versionedPut(c ctx, x rec) error {
	s := versionedStore(r.store).In(c)
	put, err := s.Put(x.Key, x.Value, x.Timestamp)
	if err != nil {
		return err
	}
	code := int64(math.MinInt64)
	switch {
	case put.Current:
		code = -1
	case put.Stored:
		code = put.ValidTo.UnixMilli()
	}
	now, then := "none", "none"
	if v, ok, err := s.Get(x.Key); err != nil {
		return err
	} else if ok {
		now = fmt.Sprintf("%s@%d", text(v.Value), v.From.UnixMilli())
	}
	asOf := time.UnixMilli(max(0, x.Timestamp.UnixMilli()-r.Back))
	if v, ok, err := s.GetAsOf(x.Key, asOf); err != nil {
		return err
	} else if ok {
		then = fmt.Sprintf("%s@%d", text(v.Value), v.From.UnixMilli())
	}
	return c.Forward(value(x, fmt.Sprintf("%d %s %s", code, now, then)))
}

var errFail = errors.New("fail")

func fail(c ctx, x rec) error {
	if x.Value == "fail" {
		return errFail
	}
	return c.Forward(x)
}
