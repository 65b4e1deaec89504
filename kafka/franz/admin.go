package franz

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

// pollPause is the pause between two looks at something that a broker is about to do.
const pollPause = 20 * time.Millisecond

// admin asks brokers, and changes topics.
type admin struct {
	cl     *kgo.Client
	link   *link
	adm    *kadm.Client
	closed atomic.Bool
}

// NewAdmin makes an admin client.
func (c Client) NewAdmin(s kafka.Settings) (kafka.Admin, error) {
	cl, l, err := c.dial(s, "admin")
	if err != nil {
		return nil, err
	}
	return &admin{cl: cl, link: l, adm: kadm.NewClient(cl)}, nil
}

// begin starts a call, and refuses it when the part is closed.
func (a *admin) begin(op string) (call, error) {
	c := a.link.call(op)
	if a.closed.Load() {
		return c, c.fail("", kgo.ErrClientClosed)
	}
	return c, nil
}

func (a *admin) Close(ctx context.Context) error {
	if a.closed.Swap(true) {
		return nil
	}
	return closeClient(ctx, a.cl, a.link, "close admin")
}
