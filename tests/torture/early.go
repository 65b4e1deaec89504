package main

import (
	"encoding/binary"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// early answers the end of a transaction as done, and lets the broker know of it only d after somebody has read the group's
// offsets: that is what a coordinator does that has decided, and has not written its markers yet. Until then the
// producer's further requests wait, and are lost then; Kafka answers them with "concurrent transactions".
func (p *proxy) early(frame []byte, d time.Duration) ([]byte, error) {
	q, err := readRequest(frame)
	if err != nil {
		return nil, err
	}
	end, ok := q.(*kmsg.EndTxnRequest)
	if !ok {
		return nil, errors.New("only the end of a transaction can be answered early")
	}
	done, looked := make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	p.held[end.TransactionalID] = done
	p.looked = looked
	target := p.target
	p.mu.Unlock()
	p.all.Go(func() {
		select {
		case <-looked:
			time.Sleep(d)
		case <-time.After(20 * time.Second):
			p.fail(errors.New("nobody read the group's offsets while the end of a transaction was held back"))
		}
		if err := deliver(target, frame); err != nil {
			p.fail(err)
		}
		p.mu.Lock()
		delete(p.held, end.TransactionalID)
		p.mu.Unlock()
		close(done)
	})
	return respond(frame, func(r kmsg.Response) error {
		e := r.(*kmsg.EndTxnResponse)
		e.ProducerID, e.ProducerEpoch = end.ProducerID, end.ProducerEpoch+1 // as from version 5 on
		return nil
	})
}

// deliver sends a request on a connection of its own, and waits for the answer.
func deliver(target string, frame []byte) error {
	c, err := net.DialTimeout("tcp", target, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write(frame); err != nil {
		return err
	}
	_, err = readFrame(c)
	return err
}

// errHeld: the connection of a request that was held breaks, for whoever sent it may be dead.
var errHeld = errors.New("held until the transaction had ended")

// hold keeps a request of a producer whose transaction is answered to have ended until it has, and gives errHeld then.
func (p *proxy) hold(frame []byte) error {
	p.mu.Lock()
	none := len(p.held) == 0
	p.mu.Unlock()
	if none {
		return nil
	}
	switch int16(binary.BigEndian.Uint16(frame[4:])) {
	case 0, 22, 24, 25, 26, 28: // produce, the producer's id, partitions, offsets, the end, the offsets themselves
	case 9: // somebody reads the group's offsets
		p.mu.Lock()
		if p.looked != nil {
			close(p.looked)
			p.looked = nil
		}
		p.mu.Unlock()
		return nil
	default:
		return nil
	}
	q, err := readRequest(frame)
	if err != nil {
		return err
	}
	id := transactionalID(q)
	p.mu.Lock()
	done := p.held[id]
	p.mu.Unlock()
	if done == nil {
		return nil
	}
	<-done
	return errHeld
}

func transactionalID(q kmsg.Request) string {
	var id *string
	switch q := q.(type) {
	case *kmsg.ProduceRequest:
		id = q.TransactionID
	case *kmsg.InitProducerIDRequest:
		id = q.TransactionalID
	case *kmsg.AddPartitionsToTxnRequest:
		id = &q.TransactionalID
		for i := range q.Transactions {
			id = &q.Transactions[i].TransactionalID
		}
	case *kmsg.AddOffsetsToTxnRequest:
		id = &q.TransactionalID
	case *kmsg.EndTxnRequest:
		id = &q.TransactionalID
	case *kmsg.TxnOffsetCommitRequest:
		id = &q.TransactionalID
	}
	if id == nil {
		return ""
	}
	return *id
}
