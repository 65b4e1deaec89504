package franz

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A request that is sent once ends in an answer or in one of these.
var (
	errNoAnswer = errors.New("no answer came") // its fate is unknown
	errNotSent  = errors.New("not sent")       // it certainly did not leave
)

// route is the key under which a coordinator is remembered.
type route struct {
	kind int8
	key  string
}

// once sends a request to a coordinator a single time. franz-go would repeat it after a
// broken connection, while the first copy may still be on its way.
func (t *transactional) once(ctx context.Context, to route, req kmsg.Request) (kmsg.Response, error) {
	node, ok := t.routes[to]
	if !ok {
		var err error
		if node, err = findCoordinator(ctx, t.cl, to.kind, to.key); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotSent, err)
		}
		t.routes[to] = node
	}
	resp, err := t.cl.Broker(int(node)).Request(ctx, req)
	if err == nil {
		return resp, nil
	}
	delete(t.routes, to)
	if notConnected(err) {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
}

// capped is a request that is sent in no newer version than max.
type capped struct {
	kmsg.Request
	max int16
}

// MaxVersion is what franz-go asks when it agrees on a version with the broker.
func (c capped) MaxVersion() int16 { return min(c.max, c.Request.MaxVersion()) }
