package franz

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/kafka"
)

// link watches the connections of one franz-go client, so that an error can tell whether
// anybody answered, and how many transactions the broker has answered to have ended.
type link struct {
	ctx    context.Context // the client's; cancelled to make it give up
	cancel context.CancelFunc
	addrs  string // the bootstrap addresses, for messages
	// patience is how long a call goes on trying to connect if its context does not end.
	patience time.Duration

	answered atomic.Int64 // when a response was last read, nanoseconds of the monotonic clock
	broken   atomic.Pointer[broken]
	refused  atomic.Pointer[broken] // a login that failed
	ends     atomic.Int64           // EndTxn requests that were answered
}

// broken is why a connection could not be made, and when.
type broken struct {
	at  int64
	err error
}

// epoch makes monotonic nanoseconds of times.
var epoch = time.Now()

func now() int64 { return int64(time.Since(epoch)) }

func newLink(brokers []string, patience time.Duration) *link {
	l := &link{addrs: strings.Join(brokers, ","), patience: patience}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// OnBrokerConnect remembers why a connection could not be made.
func (l *link) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil {
		return
	}
	l.broken.Store(&broken{now(), err})
	if classOf(err) == kafka.ClassUnauthorized {
		l.refused.Store(&broken{now(), err})
	}
}

// OnBrokerE2E remembers that an answer came.
func (l *link) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if err := e2e.Err(); err != nil {
		if key == int16(kmsg.SASLAuthenticate) { // some brokers just hang up on a wrong password
			l.refused.Store(&broken{now(), fmt.Errorf("%w (the broker closed the connection: %w)", kerr.SaslAuthenticationFailed, err)})
		}
		return
	}
	l.answered.Store(now())
	if key == int16(kmsg.EndTxn) {
		l.ends.Add(1)
	}
}

// call is one call of a part, for its errors.
type call struct {
	link  *link
	op    string
	start int64
}

func (l *link) call(op string) call { return call{l, op, now()} }

// fail classifies an error of the call; nil stays nil. on names what the call was about.
func (c call) fail(on string, err error) error {
	if err == nil {
		return nil
	}
	if e := (*kafka.Error)(nil); errors.As(err, &e) {
		return err
	}
	e := &kafka.Error{Class: classOf(err), Op: c.op, On: on, Err: err}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		c.ended(e)
	}
	if e.Class == kafka.ClassUnreachable {
		e.Err = &unreachable{addrs: c.link.addrs, err: e.Err}
	}
	return e
}

// ended finds out why a call was not done when its context ended: the library keeps the
// reason to itself.
func (c call) ended(e *kafka.Error) {
	e.Class = kafka.ClassTimeout
	if r := c.link.refused.Load(); r != nil && r.at > c.start {
		e.Class, e.Err = kafka.ClassUnauthorized, r.err
		return
	}
	if c.answered() {
		return
	}
	e.Class = kafka.ClassUnreachable
	if b := c.link.broken.Load(); b != nil {
		e.Err = b.err
	}
}

// class gives an error of the call the class that its state demands, whatever caused it.
func (c call) class(class kafka.ErrorClass, on string, err error) error {
	return &kafka.Error{Class: class, Op: c.op, On: on, Err: err}
}

// answered tells whether any broker has answered since the call began.
func (c call) answered() bool { return c.link.answered.Load() > c.start }

type unreachable struct {
	addrs string
	err   error
}

func (u *unreachable) Error() string {
	return "no broker answered at " + u.addrs + ": " + u.err.Error()
}
func (u *unreachable) Unwrap() error { return u.err }

// wait waits for a pause between two tries, or for the context or the client to end.
func (l *link) wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ctx.Done():
		return kgo.ErrClientClosed
	}
}

// patiently repeats what failed because no connection could be made, until the context
// ends: a broker that restarts refuses connections for a while, or something between accepts
// and closes them, and franz-go gives up at once. What was refused was never sent; what was
// hung up on may have been, as after any broken connection, where franz-go asks again too.
func patiently[T any](ctx context.Context, l *link, try func() (T, error)) (T, error) {
	start := now()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		result, err := try()
		if err == nil || !notConnected(err) && !hungUp(err) || now()-start > int64(l.patience) || l.wait(ctx, pause) != nil {
			return result, err
		}
	}
}

// persistently asks again while the answer is "not now", until the context ends. ask also names what an error is about.
func persistently[T any](ctx context.Context, c call, notNow func(error) bool, ask func() (result T, on string, err error)) (T, error) {
	var none T
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		result, on, err := ask()
		if err == nil {
			return result, nil
		}
		if !notNow(err) {
			return none, c.fail(on, err)
		}
		if werr := c.link.wait(ctx, pause); werr != nil {
			return none, c.class(kafka.ClassTimeout, on, fmt.Errorf("%w: %w", err, werr))
		}
	}
}
