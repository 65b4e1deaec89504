package embedded

import (
	"context"
	"errors"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
)

// What a closed host refuses names the operation, and says in the same words why.
func TestClosedHostIsTold(t *testing.T) {
	h := &Host{mu: newTurn(), closed: true, consumer: Consumer{Stop: func([]kafka.TopicPartition) error { return nil },
		Member: func() (kafka.Member, error) { return kafka.Member{}, nil }}}
	h.byHand.Store(true) // and past what asks for that
	tps := []kafka.TopicPartition{{Topic: "in", Partition: 1}}
	for want, call := range map[string]func() error{
		"process: the host is closed":                  func() error { return h.Process(&kafka.Record{Topic: "in"}, func(*Task) error { return nil }) },
		"commit: the host is closed":                   func() error { return h.Commit(context.Background()) },
		"assign partitions [in-1]: the host is closed": func() error { return h.Assign(context.Background(), tps) },
	} {
		if err := call(); !errors.Is(err, ErrClosed) || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
