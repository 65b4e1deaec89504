//go:build cgo

package confluent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// admin asks and changes topics and groups. It runs on a producer instance that produces
// nothing: an AdminClient of its own cannot hand its log lines over.
type admin struct {
	n    *sender
	a    *ck.AdminClient
	wait time.Duration

	client   Client
	settings kafka.Settings
	reading  sync.Mutex
	readers  map[string]*groupReader // by group
	members  *memberReader           // idle
	ending   sync.WaitGroup          // member readers that are being destroyed

	life   context.Context // ends with Close, and every call with it
	end    context.CancelFunc
	calls  sync.RWMutex // shared by every call; the instance is destroyed under it
	closed bool
	once   sync.Once
}

// NewAdmin makes an admin client.
func (c Client) NewAdmin(s kafka.Settings) (kafka.Admin, error) {
	const op = "make the admin client"
	s = withDefaults(s)
	conf, err := adminConf(c, s, "admin")
	if err != nil {
		return nil, invalid(op, "%w", err)
	}
	n, err := newSender(s, "admin", 0, conf)
	if err != nil {
		return nil, invalid(op, "%w", err)
	}
	a, err := ck.NewAdminClientFromProducer(n.p)
	if err != nil {
		n.retire()
		return nil, invalid(op, "%w", err)
	}
	d := &admin{n: n, a: a, wait: s.RequestTimeout, client: c, settings: s}
	d.life, d.end = context.WithCancel(context.Background())
	return d, nil
}

// adminConf configures a producer that produces nothing. part is the suffix of the client id.
func adminConf(c Client, s kafka.Settings, part string) (ck.ConfigMap, error) {
	conf, err := base(s, part)
	if err != nil {
		return nil, err
	}
	conf["go.delivery.report.fields"] = "none"
	conf["go.events.channel.size"] = 64
	conf["go.produce.channel.size"] = 1
	return conf, c.extend(conf)
}

// Close ends the client and the calls that are under way.
func (d *admin) Close(ctx context.Context) error {
	d.once.Do(func() {
		d.end()
		d.n.calls.Add(1) // the instance must outlive the calls
		go func() {
			defer d.n.calls.Done()
			d.calls.Lock()
			defer d.calls.Unlock()
			d.closed = true
			for _, r := range d.readers {
				r.close()
			}
			d.endMemberReader(d.members)
			d.ending.Wait()
		}()
	})
	return d.n.close(ctx, "close the admin client", "")
}

// ask runs one request, again and again while the broker says that it may succeed later,
// until the context ends. The time limit of one request goes into its options.
func (d *admin) ask(ctx context.Context, op, on string, request func(context.Context, ck.AdminOptionRequestTimeout) error) error {
	d.calls.RLock()
	defer d.calls.RUnlock()
	if d.closed || d.life.Err() != nil {
		return &kafka.Error{Class: kafka.ClassClosed, Op: op, On: on, Err: errClosed}
	}
	return d.repeat(ctx, d.n.wire, op, on, func(ctx context.Context) error {
		return request(ctx, ck.SetAdminRequestTimeout(d.limit(ctx)))
	})
}

// repeat runs a request until it has an answer that counts. w listens to the instance that it runs on.
func (d *admin) repeat(ctx context.Context, w *wire, op, on string, request func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()
	for {
		err := request(ctx)
		if err == nil {
			w.answer()
			return nil
		}
		if d.life.Err() != nil {
			return &kafka.Error{Class: kafka.ClassClosed, Op: op, On: on, Err: errClosed}
		}
		if classOf(err) != kafka.ClassRetriable {
			return w.fail(op, on, err)
		}
		w.answer()
		if !pause(ctx) {
			return &kafka.Error{Class: kafka.ClassTimeout, Op: op, On: on, Err: fmt.Errorf("%w: the last answer was: %w", ctx.Err(), err)}
		}
	}
}

var errClosed = errors.New("the admin client was closed")

// limit is the time one request may take.
func (d *admin) limit(ctx context.Context) time.Duration {
	wait := d.wait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	return max(wait, time.Millisecond)
}

// codeOf gives the error of a result, or nil.
func codeOf(e ck.Error) error {
	if e.Code() == ck.ErrNoError {
		return nil
	}
	return e
}

func topicID(u ck.UUID) (id kafka.TopicID) {
	binary.BigEndian.PutUint64(id[:8], uint64(u.GetMostSignificantBits()))
	binary.BigEndian.PutUint64(id[8:], uint64(u.GetLeastSignificantBits()))
	return id
}
