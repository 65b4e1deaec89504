package kafkatest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

var consumerTests = []test{
	{"starts at the given offset", false, startsAtOffset},
	{"keeps nulls, empties, headers and timestamps", false, keepsRecordParts},
	{"several partitions, in order", false, severalPartitions},
	{"bounds a poll", false, boundsPoll},
	{"assign adds", false, assignAdds},
	{"unassign, and assign elsewhere", false, unassigns},
	{"pause and resume", false, pausesAndResumes},
	{"offset out of range is reported", false, outOfRange},
	{"unknown topic is reported", false, unknownTopic},
	{"the end of a poll's context is no error", false, pollEnds},
	{"Next passes markers", false, nextPassesMarkers},
	{"aborted records are invisible", false, abortedInvisible},
	{"open transactions hold read_committed back", false, openTransactionsHold},
	{"read_uncommitted shows everything", false, readUncommitted},
	{"bytes stay valid", false, bytesStayValid},
	{"closed", false, consumerClosed},
}

func startsAtOffset(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "from", 1, nil)
	s.put(t, topic, numbers("v", 0, 10)...)
	for _, from := range []int64{0, 1, 7, 9} {
		r, tp := s.assigned(t, kafka.ConsumerConfig{}, topic, from)
		r.until(t, "everything was read", func() bool { return r.next[tp] == 10 })
		r.want(t, tp, numbers("v", int(from), 10))
	}
	// the end of the log is inside the range: what comes later is read
	r, tp := s.assigned(t, kafka.ConsumerConfig{}, topic, 10)
	r.quiet(t, tp)
	s.put(t, topic, "later")
	r.until(t, "the new record was read", func() bool { return r.next[tp] == 11 })
	r.want(t, tp, []string{"later"})
}

func keepsRecordParts(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "parts", 1, nil)
	at := time.UnixMilli(1_234_567_890_123)
	noError(t, s.broker.raw(t).ProduceSync(s.ctx(t),
		&kgo.Record{Topic: topic, Timestamp: at, Key: nil, Value: nil},
		&kgo.Record{Topic: topic, Timestamp: at, Key: []byte{}, Value: []byte{}},
		&kgo.Record{Topic: topic, Timestamp: at, Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{
			{Key: "a", Value: []byte("1")}, {Key: "", Value: nil}, {Key: "a", Value: []byte{}}}},
	).FirstErr())
	r, tp := s.assigned(t, kafka.ConsumerConfig{}, topic, 0)
	var got []kafka.Record
	r.until(t, "three records were read", func() bool {
		for _, f := range r.poll.Partitions {
			got = append(got, f.Records...)
		}
		return r.next[tp] == 3
	})
	for i, rec := range got {
		if rec.Offset != int64(i) || rec.Timestamp != at.UnixMilli() {
			t.Errorf("record %d has offset %d and timestamp %d, want %d and %d", i, rec.Offset, rec.Timestamp, i, at.UnixMilli())
		}
	}
	if got[0].Key != nil || got[0].Value != nil {
		t.Errorf("nulls came as key %v, value %v", got[0].Key, got[0].Value)
	}
	if got[1].Key == nil || got[1].Value == nil || len(got[1].Key)+len(got[1].Value) != 0 {
		t.Errorf("empties came as key %v, value %v", got[1].Key, got[1].Value)
	}
	if string(got[2].Key) != "k" || string(got[2].Value) != "v" {
		t.Errorf("got %q: %q", got[2].Key, got[2].Value)
	}
	h := got[2].Headers
	if len(h) != 3 || h[0].Key != "a" || string(h[0].Value) != "1" || h[1].Key != "" || h[1].Value != nil ||
		h[2].Key != "a" || h[2].Value == nil || len(h[2].Value) != 0 {
		t.Errorf("headers came as %v", h)
	}
}

func severalPartitions(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "several", 3, nil)
	from := map[kafka.TopicPartition]int64{}
	for p := range int32(3) {
		s.putTo(t, topic, p, numbers("v", 0, 2000)...)
		from[kafka.TopicPartition{Topic: topic, Partition: p}] = int64(p)
	}
	c := s.consumer(t, kafka.ConsumerConfig{})
	noError(t, c.Assign(s.ctx(t), from))
	r := newReader(c)
	for tp, o := range from {
		r.until(t, "all partitions were read", func() bool { return r.next[tp] == 2000 })
		r.want(t, tp, numbers("v", int(o), 2000))
	}
}

func boundsPoll(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "bound", 1, nil)
	s.put(t, topic, numbers("v", 0, 1000)...)
	r, tp := s.assigned(t, kafka.ConsumerConfig{MaxPollRecords: 7}, topic, 0)
	r.until(t, "everything was read", func() bool { return r.next[tp] == 1000 })
	r.want(t, tp, numbers("v", 0, 1000))
	if r.most > 7 {
		t.Errorf("a poll brought %d records, want at most 7", r.most)
	}
}

func assignAdds(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "adds", 2, nil)
	s.putTo(t, topic, 0, numbers("a", 0, 5)...)
	s.putTo(t, topic, 1, numbers("b", 0, 5)...)
	r, a := s.assigned(t, kafka.ConsumerConfig{}, topic, 0)
	r.until(t, "partition 0 was read", func() bool { return r.next[a] == 5 })
	b := kafka.TopicPartition{Topic: topic, Partition: 1}
	noError(t, r.c.Assign(s.ctx(t), map[kafka.TopicPartition]int64{b: 2}))
	r.until(t, "partition 1 was read", func() bool { return r.next[b] == 5 })
	s.putTo(t, topic, 0, "more")
	r.until(t, "partition 0 goes on", func() bool { return r.next[a] == 6 })
	r.want(t, a, append(numbers("a", 0, 5), "more"))
	r.want(t, b, numbers("b", 2, 5))
}

func unassigns(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "unassign", 2, nil)
	s.putTo(t, topic, 0, numbers("a", 0, 5000)...)
	s.putTo(t, topic, 1, numbers("b", 0, 5)...)
	r, a := s.assigned(t, kafka.ConsumerConfig{MaxPollRecords: 10}, topic, 0)
	r.until(t, "some were read", func() bool { return len(r.got[a]) > 0 })
	if len(r.got[a]) == 5000 {
		t.Fatal("one poll brought everything: the test shows nothing")
	}
	noError(t, r.c.Unassign(a)) // the library has fetched more than it gave
	r.quiet(t, a)
	b := kafka.TopicPartition{Topic: topic, Partition: 1}
	noError(t, r.c.Assign(s.ctx(t), map[kafka.TopicPartition]int64{b: 0}))
	r.until(t, "the other partition was read", func() bool { return r.next[b] == 5 })
	r.quiet(t, a)

	delete(r.next, a)
	delete(r.got, a)
	noError(t, r.c.Assign(s.ctx(t), map[kafka.TopicPartition]int64{a: 1}))
	r.until(t, "it was read again to its end", func() bool { return r.next[a] == 5000 })
	r.want(t, a, numbers("a", 1, 5000))
}

func pausesAndResumes(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "pause", 2, nil)
	s.putTo(t, topic, 0, numbers("a", 0, 3000)...)
	r, a := s.assigned(t, kafka.ConsumerConfig{MaxPollRecords: 10}, topic, 0)
	b := kafka.TopicPartition{Topic: topic, Partition: 1}
	noError(t, r.c.Assign(s.ctx(t), map[kafka.TopicPartition]int64{b: 0}))
	r.until(t, "some were read", func() bool { return len(r.got[a]) > 0 })
	r.c.Pause(a)
	r.once(within(t, 200*time.Millisecond), t) // may still bring what was buffered
	r.quiet(t, a)
	s.putTo(t, topic, 1, numbers("b", 0, 3)...)
	r.until(t, "the other partition goes on", func() bool { return r.next[b] == 3 })
	r.quiet(t, a)
	r.c.Resume(a)
	r.until(t, "everything was read", func() bool { return r.next[a] == 3000 })
	r.want(t, a, numbers("a", 0, 3000))
	r.want(t, b, numbers("b", 0, 3))
}

func outOfRange(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "range", 2, nil)
	s.putTo(t, topic, 0, numbers("a", 0, 10)...)
	s.putTo(t, topic, 1, numbers("b", 0, 10)...)
	_, err := kadm.NewClient(s.broker.raw(t)).DeleteRecords(s.ctx(t), kadm.Offsets{topic: {0: {Topic: topic, Partition: 0, At: 5}}})
	noError(t, err)
	good := kafka.TopicPartition{Topic: topic, Partition: 1}
	for _, from := range []int64{2, 11} { // before the start, behind the end
		r, bad := s.assigned(t, kafka.ConsumerConfig{}, topic, from)
		noError(t, r.c.Assign(s.ctx(t), map[kafka.TopicPartition]int64{good: 0}))
		r.until(t, "the error is reported", func() bool { return r.errs[bad] != nil })
		wantClass(t, r.errs[bad], kafka.ClassOffsetOutOfRange)
		r.until(t, "the other partition was read", func() bool { return r.next[good] == 10 })
		r.quiet(t, bad) // no reset
		r.want(t, bad, nil)

		noError(t, r.c.Unassign(bad))
		delete(r.errs, bad)
		noError(t, r.c.Assign(s.ctx(t), map[kafka.TopicPartition]int64{bad: 6}))
		r.until(t, "it was read from inside the range", func() bool { return r.next[bad] == 10 })
		r.want(t, bad, numbers("a", 6, 10))
		if r.errs[bad] != nil {
			t.Errorf("an error after the new assignment: %v", r.errs[bad])
		}
	}
}

func unknownTopic(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "known", 1, nil)
	s.put(t, topic, "v")
	r, good := s.assigned(t, kafka.ConsumerConfig{}, topic, 0)
	bad := kafka.TopicPartition{Topic: s.broker.Name(t, "unknown")}
	noError(t, r.c.Assign(s.ctx(t), map[kafka.TopicPartition]int64{bad: 0}))
	r.until(t, "the error is reported", func() bool { return r.errs[bad] != nil })
	wantClass(t, r.errs[bad], kafka.ClassUnknownTopic)
	missing := kafka.TopicPartition{Topic: topic, Partition: 5}
	noError(t, r.c.Assign(s.ctx(t), map[kafka.TopicPartition]int64{missing: 0}))
	r.until(t, "the missing partition is reported", func() bool { return r.errs[missing] != nil })
	wantClass(t, r.errs[missing], kafka.ClassUnknownTopic)
	r.until(t, "the other topic was read", func() bool { return r.next[good] == 1 })
	if r.errs[good] != nil {
		t.Errorf("the known topic has an error: %v", r.errs[good])
	}
}

func pollEnds(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "idle", 1, nil)
	c := s.consumer(t, kafka.ConsumerConfig{})
	var p kafka.Poll
	poll := func(ctx context.Context) error { return c.Poll(ctx, &p) }
	noError(t, bounded(t, 100*time.Millisecond, poll)) // nothing assigned
	noError(t, c.Assign(s.ctx(t), map[kafka.TopicPartition]int64{{Topic: topic}: 0}))
	noError(t, bounded(t, 100*time.Millisecond, poll))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	noError(t, c.Poll(ended, &p))
	for _, f := range p.Partitions {
		if len(f.Records) > 0 || f.Err != nil {
			t.Errorf("an empty topic brought %+v", f)
		}
	}
}

func nextPassesMarkers(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "markers", 1, nil)
	s.putTransaction(t, topic, true, "a", "b") // 0, 1, marker 2
	r, tp := s.assigned(t, kafka.ConsumerConfig{}, topic, 0)
	r.until(t, "Next is behind the marker", func() bool { return r.next[tp] == 3 })
	s.putTransaction(t, topic, false, "c") // 3, marker 4
	r.until(t, "Next is behind an aborted transaction", func() bool { return r.next[tp] == 5 })
	s.putTransaction(t, topic, true, "d") // 5, marker 6
	r.until(t, "Next is behind the last marker", func() bool { return r.next[tp] == 7 })
	r.want(t, tp, []string{"a", "b", "d"})

	r, tp = s.assigned(t, kafka.ConsumerConfig{}, topic, 6) // nothing but a marker
	r.until(t, "Next is behind a marker alone", func() bool { return r.next[tp] == 7 })
	r.want(t, tp, nil)
}

func abortedInvisible(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "aborted", 1, nil)
	s.put(t, topic, "plain")
	s.putTransaction(t, topic, false, numbers("x", 0, 100)...)
	s.putTransaction(t, topic, true, "committed")
	s.putTransaction(t, topic, false, numbers("y", 0, 100)...)
	end := int64(1 + 101 + 2 + 101)
	r, tp := s.assigned(t, kafka.ConsumerConfig{}, topic, 0)
	r.until(t, "everything was passed", func() bool { return r.next[tp] == end })
	r.want(t, tp, []string{"plain", "committed"})
}

func openTransactionsHold(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "open", 1, nil)
	s.put(t, topic, "before")
	open := s.openTransaction(t, topic, "inside")
	s.put(t, topic, "after")
	r, tp := s.assigned(t, kafka.ConsumerConfig{}, topic, 0)
	r.until(t, "the first record was read", func() bool { return r.next[tp] == 1 })
	r.quiet(t, tp)
	noError(t, open.EndTransaction(s.ctx(t), kgo.TryCommit))
	r.until(t, "everything was read", func() bool { return r.next[tp] == 4 })
	r.want(t, tp, []string{"before", "inside", "after"})
}

func readUncommitted(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "uncommitted", 1, nil)
	s.putTransaction(t, topic, false, "aborted")
	open := s.openTransaction(t, topic, "open")
	r, tp := s.assigned(t, kafka.ConsumerConfig{ReadUncommitted: true}, topic, 0)
	r.until(t, "everything was read", func() bool { return r.next[tp] == 3 })
	r.want(t, tp, []string{"aborted", "open"})
	noError(t, open.EndTransaction(s.ctx(t), kgo.TryAbort))
}

func bytesStayValid(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "valid", 1, nil)
	want := numbers("v", 0, 3000)
	s.put(t, topic, want...)
	r, tp := s.assigned(t, kafka.ConsumerConfig{MaxPollRecords: 100}, topic, 0)
	var kept [][]byte
	r.until(t, "everything was read", func() bool {
		for _, f := range r.poll.Partitions {
			for _, rec := range f.Records {
				kept = append(kept, rec.Value)
			}
		}
		return r.next[tp] == 3000
	})
	for i, v := range kept {
		if string(v) != want[i] {
			t.Fatalf("the value of record %d is %q after later polls, want %q", i, v, want[i])
		}
	}
}

func consumerClosed(t *testing.T, s *suite) {
	topic := s.broker.CreateTopic(t, "closed", 1, nil)
	r, tp := s.assigned(t, kafka.ConsumerConfig{}, topic, 0)
	r.once(within(t, 100*time.Millisecond), t)
	noError(t, r.c.Close(s.ctx(t)))
	wantClass(t, r.c.Poll(s.ctx(t), &r.poll), kafka.ClassClosed)
	wantClass(t, r.c.Assign(s.ctx(t), map[kafka.TopicPartition]int64{tp: 0}), kafka.ClassClosed)
	if err := r.c.Unassign(tp); err != nil && !errors.As(err, new(*kafka.Error)) {
		t.Errorf("unassign after close: %v is no *kafka.Error", err)
	}
	r.c.Pause(tp)
	r.c.Resume(tp)
	noError(t, r.c.Close(s.ctx(t)))
}
