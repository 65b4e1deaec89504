package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// proxied is one connection through the proxy.
type proxied struct {
	proxy          *proxy
	client, server net.Conn
	// waiting are the requests without an answer, in order: Kafka answers them so.
	waiting chan waiting
	lost    bool // an answer was; under proxy.mu
}

// waiting is a request that waits for its answer.
type waiting struct {
	answer []byte // ready, in the broker's place; nil: the broker's own
}

// hangUp ends the client's side. The broker's stays until it has answered what it was asked: a broker
// learns late of a client that is gone. (An embedded one never drops a member whose
// answer to a join it could not deliver.)
func (c *proxied) hangUp() { _ = c.client.Close() } // it may be closed already

// requests carries requests to the broker until one side ends.
func (c *proxied) requests() {
	defer close(c.waiting)
	defer c.hangUp()
	for {
		frame, err := readFrame(c.client)
		if err != nil {
			return
		}
		if err := c.proxy.hold(frame); err != nil {
			if !errors.Is(err, errHeld) {
				c.proxy.fail(err)
			}
			return
		}
		f, meets := c.proxy.meet(int16(binary.BigEndian.Uint16(frame[4:])))
		switch {
		case meets && f.early > 0:
			answer, err := c.proxy.early(frame, f.early)
			if err != nil {
				c.proxy.fail(err)
				return
			}
			c.waiting <- waiting{answer}
		case meets && f.late > 0:
			c.late(frame, f.late)
			return
		case meets:
			answer, err := refuse(frame, f.code)
			if err != nil {
				c.proxy.fail(err)
				return
			}
			c.waiting <- waiting{answer}
		default:
			c.waiting <- waiting{}
			if _, err := c.server.Write(frame); err != nil {
				return
			}
		}
	}
}

// late breaks the client's connection, and lets the request arrive when it is over.
func (c *proxied) late(frame []byte, d time.Duration) {
	c.hangUp()
	time.Sleep(d)
	c.waiting <- waiting{}
	_, _ = c.server.Write(frame) // a broker that is gone meanwhile does not get it
}

// answers carries the answers back, as far as there is somebody to take them.
func (c *proxied) answers() {
	defer func() {
		c.hangUp()
		_ = c.server.Close()  // the last use of it
		for range c.waiting { // until requests has ended
		}
		c.proxy.mu.Lock()
		delete(c.proxy.conns, c)
		c.proxy.mu.Unlock()
	}()
	for w := range c.waiting {
		frame := w.answer
		if frame == nil {
			var err error
			if frame, err = readFrame(c.server); err != nil {
				return
			}
		}
		lost, delay := c.proxy.answer(c)
		if lost {
			continue
		}
		time.Sleep(delay)
		_, _ = c.client.Write(frame) // the client may be gone
	}
}

// readFrame reads a request or an answer, with its length in front.
func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 4 || n > 256<<20 {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	frame := make([]byte, 4+n)
	copy(frame, size[:])
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// requestKeys are the requests that a fault can be made for.
var requestKeys = map[string]int16{"EndTxn": 26, "InitProducerID": 22, "AddOffsetsToTxn": 25, "TxnOffsetCommit": 28,
	"Produce": 0, "OffsetFetch": 9, "Heartbeat": 12}

// refuse makes the answer to a request that says only that there was an error.
func refuse(frame []byte, code int16) ([]byte, error) {
	return respond(frame, func(r kmsg.Response) error {
		switch r := r.(type) {
		case *kmsg.EndTxnResponse:
			r.ErrorCode = code
		case *kmsg.InitProducerIDResponse:
			r.ErrorCode = code
		case *kmsg.AddOffsetsToTxnResponse:
			r.ErrorCode = code
		case *kmsg.HeartbeatResponse:
			r.ErrorCode = code
		case *kmsg.TxnOffsetCommitResponse, *kmsg.ProduceResponse, *kmsg.OffsetFetchResponse:
			q, err := readRequest(frame)
			if err != nil {
				return err
			}
			refuseParts(q, r, code)
		default:
			return fmt.Errorf("no refusal for request %d", r.Key())
		}
		return nil
	})
}

// respond makes the answer to a request, which fill fills.
func respond(frame []byte, fill func(kmsg.Response) error) ([]byte, error) {
	key, version := int16(binary.BigEndian.Uint16(frame[4:])), int16(binary.BigEndian.Uint16(frame[6:]))
	r := kmsg.ResponseForKey(key)
	r.SetVersion(version)
	if err := fill(r); err != nil {
		return nil, err
	}
	answer := append(make([]byte, 4), frame[8:12]...) // the correlation id
	if r.IsFlexible() {
		answer = append(answer, 0) // no tags in the header
	}
	answer = r.AppendTo(answer)
	binary.BigEndian.PutUint32(answer, uint32(len(answer)-4))
	return answer, nil
}

// refuseParts puts an error into each part of an answer that the request has asked for.
func refuseParts(q kmsg.Request, r kmsg.Response, code int16) {
	switch r := r.(type) {
	case *kmsg.TxnOffsetCommitResponse:
		for _, t := range q.(*kmsg.TxnOffsetCommitRequest).Topics {
			rt := kmsg.TxnOffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID}
			for _, p := range t.Partitions {
				rt.Partitions = append(rt.Partitions, kmsg.TxnOffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: code})
			}
			r.Topics = append(r.Topics, rt)
		}
	case *kmsg.ProduceResponse:
		for _, t := range q.(*kmsg.ProduceRequest).Topics {
			rt := kmsg.ProduceResponseTopic{Topic: t.Topic, TopicID: t.TopicID}
			for _, p := range t.Partitions {
				rp := kmsg.NewProduceResponseTopicPartition()
				rp.Partition, rp.ErrorCode, rp.BaseOffset = p.Partition, code, -1
				rt.Partitions = append(rt.Partitions, rp)
			}
			r.Topics = append(r.Topics, rt)
		}
	case *kmsg.OffsetFetchResponse:
		r.ErrorCode = code // before version 8
		for _, g := range q.(*kmsg.OffsetFetchRequest).Groups {
			rg := kmsg.NewOffsetFetchResponseGroup()
			rg.Group, rg.ErrorCode = g.Group, code
			r.Groups = append(r.Groups, rg)
		}
	}
}

func readRequest(frame []byte) (kmsg.Request, error) {
	body, err := requestBody(frame)
	if err != nil {
		return nil, err
	}
	q := kmsg.RequestForKey(int16(binary.BigEndian.Uint16(frame[4:])))
	q.SetVersion(int16(binary.BigEndian.Uint16(frame[6:])))
	return q, q.ReadFrom(body)
}

// requestBody is what follows the header of a request: key, version, correlation id, client id and,
// in flexible versions, tags (which no client here sends).
func requestBody(frame []byte) ([]byte, error) {
	q := kmsg.RequestForKey(int16(binary.BigEndian.Uint16(frame[4:])))
	q.SetVersion(int16(binary.BigEndian.Uint16(frame[6:])))
	at := 14
	if n := int16(binary.BigEndian.Uint16(frame[12:])); n > 0 {
		at += int(n)
	}
	if q.IsFlexible() {
		at++
	}
	if at > len(frame) {
		return nil, fmt.Errorf("a request of %d bytes", len(frame))
	}
	return frame[at:], nil
}
