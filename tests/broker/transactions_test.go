package broker

import (
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/streams"
)

// A cluster of one whose transaction log wants three replicas: the usual mistake of a first
// try. No transaction can ever start, and both guarantees need them.
func TestTransactionsImpossible(t *testing.T) {
	t.Parallel()
	n := start(t, "transaction.state.log.replication.factor=3")
	everyone(t, func(t *testing.T, c kafka.Client, g streams.Guarantee) {
		a := newApp(t, n.addr, c, g)
		a.createTopics()
		a.run(a.config())
		_ = a.fails(kafka.ClassTransactionsUnavailable, "transaction.state.log.replication.factor", ".min.isr", a.id+"-")
		if took := time.Since(a.began); took > 25*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
