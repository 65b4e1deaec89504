//go:build cgo

package interop

import (
	"context"
	"fmt"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/embedded"
	confluentdoor "github.com/tidemark-streams/tidemark/embedded/confluent"
	"github.com/tidemark-streams/tidemark/kafka/confluent"
)

func init() {
	clients = append(clients, confluent.Client{})
	doors[confluent.Client{}.Name()] = openConfluent
}

func openConfluent(e *env, cfg embedded.Config, f function) (host, func(context.Context) error, error) {
	h, err := confluentdoor.Open(context.Background(), &ck.ConfigMap{"bootstrap.servers": e.b.Addrs[0], "group.id": e.app, "auto.offset.reset": "earliest"}, cfg)
	if err != nil {
		return nil, nil, err
	}
	if err := h.Consumer().SubscribeTopics([]string{e.pairs}, h.Rebalance); err != nil {
		return nil, nil, err
	}
	return h, func(context.Context) error {
		switch m := h.Consumer().Poll(50).(type) {
		case *ck.Message:
			return h.Process(m, func(t *embedded.Task) error { return f(t, m.Key, m.Value, m.Timestamp) })
		case ck.Error:
			if m.IsFatal() {
				return fmt.Errorf("poll: %w", m)
			}
		}
		return nil
	}, nil
}
