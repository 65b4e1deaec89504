package streams_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/streams"
)

// refusing is a client whose offset commits are refused as often as refuse says.
type refusing struct {
	kafka.Client
	class  kafka.ErrorClass
	refuse *atomic.Int32
}

func (c refusing) NewTransactional(s kafka.Settings, cfg kafka.TransactionalConfig) (kafka.Transactional, error) {
	txn, err := c.Client.NewTransactional(s, cfg)
	return refusingTxn{txn, c}, err
}

type refusingTxn struct {
	kafka.Transactional
	c refusing
}

func (x refusingTxn) SendOffsets(ctx context.Context, m kafka.Member, offsets []kafka.CommittedOffset) error {
	if x.c.refuse.Add(-1) >= 0 {
		return &kafka.Error{Class: x.c.class, Op: "send offsets", On: m.Group, Err: errors.New("refused")}
	}
	return x.Transactional.SendOffsets(ctx, m, offsets)
}

// A commit that the group refuses, because it has dropped the member before the member heard of
// it, means that the place was lost: the application takes its place again and goes on.
func TestCommitOfALostMember(t *testing.T) {
	b := testbroker.Kfake(t)
	for _, class := range []kafka.ErrorClass{kafka.ClassUnknownMember, kafka.ClassInstanceFenced, kafka.ClassIllegalGeneration} {
		t.Run(class.String(), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, b, clients[0])
			refuse := &atomic.Int32{}
			cfg := e.config()
			cfg.Guarantee, cfg.Client = streams.ExactlyOnce, refusing{e.client, class, refuse}
			app := e.start(e.wordCount(), cfg)
			in, want := lines(50)
			e.produce(in...)
			app.catchUp()
			refuse.Store(2)
			e.produce(in...)
			kafkatest.Eventually(t, 10*time.Second, "refusals", func() bool { return refuse.Load() < 0 })
			app.catchUp()
			app.close()
			for w := range want {
				want[w] *= 2
			}
			e.checkCounts(streams.ExactlyOnce, want)
		})
	}
}
