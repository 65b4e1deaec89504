package main

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

type kafkaPartition = kafka.TopicPartition

var watched = kafkaPartition{Topic: "in"}

// offsets is a group with one offset, of the commit with that number.
func offsets(t *testing.T, offset, number int64) kadm.OffsetResponses {
	t.Helper()
	m, err := task.Metadata{PartitionTime: -1, StreamTime: -1, ID: statestore.CommitID{Epoch: 1, Number: number}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return kadm.OffsetResponses{"in": {0: kadm.OffsetResponse{Offset: kadm.Offset{Topic: "in", At: offset, Metadata: m}}}}
}

// fakeBroker answers every EndTxn with success.
type fakeBroker struct {
	l net.Listener
	n atomic.Int64
}

func newFakeBroker(t *testing.T) *fakeBroker {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &fakeBroker{l: l}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for {
				frame, err := readFrame(c)
				if err != nil {
					break
				}
				b.n.Add(1)
				answer, err := refuse(frame, 0)
				if err != nil {
					t.Error(err)
				}
				if _, err := c.Write(answer); err != nil {
					break
				}
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return b
}

func (b *fakeBroker) addr() string { return b.l.Addr().String() }
func (b *fakeBroker) seen() int64  { return b.n.Load() }

// ask sends an EndTxn through the proxy on a connection of its own, and gives the error code of
// the answer.
func ask(t *testing.T, p *proxy, patience time.Duration) (int16, error) {
	t.Helper()
	c, err := net.Dial("tcp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	q := kmsg.NewPtrEndTxnRequest()
	q.SetVersion(3)
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, q, 77)
	if _, err := c.Write(frame); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	answer, err := readFrame(c)
	if err != nil {
		return 0, err
	}
	if got := binary.BigEndian.Uint32(answer[4:]); got != 77 {
		t.Errorf("correlation id %d", got)
	}
	r := kmsg.NewPtrEndTxnResponse()
	r.SetVersion(3)
	if err := r.ReadFrom(answer[9:]); err != nil {
		t.Fatal(err)
	}
	return r.ErrorCode, nil
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatal("it does not come true")
		case <-tick.C:
		}
	}
}
