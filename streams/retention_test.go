package streams

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/task"
)

type keeping struct {
	kafka.Admin
	minutes string
	err     error
}

func (k keeping) BrokerConfigs(context.Context) (map[string]string, error) {
	return map[string]string{"offsets.retention.minutes": k.minutes}, k.err
}

// Idle tasks commit again within a quarter of the time that the broker keeps offsets.
func TestIdleCommitsWithinTheRetention(t *testing.T) {
	for _, c := range []struct {
		admin      kafka.Admin
		configured time.Duration
		want       time.Duration
	}{
		{keeping{minutes: "10080"}, 0, 30 * time.Minute},
		{keeping{minutes: "60"}, 0, 15 * time.Minute},
		{keeping{minutes: "1"}, 0, 15 * time.Second},
		{keeping{minutes: "60"}, time.Minute, time.Minute},
		{keeping{minutes: "-1"}, 0, 30 * time.Minute},
		{keeping{minutes: ""}, 0, 30 * time.Minute},
		{keeping{minutes: "1", err: errors.New("not allowed")}, 0, 30 * time.Minute},
		{struct{ kafka.Admin }{}, 0, 30 * time.Minute},
	} {
		a := &App{log: slog.New(slog.DiscardHandler), cfg: Config{Limits: task.Limits{IdleCommitInterval: c.configured}}}
		a.stopping, a.requestStop = context.WithCancel(t.Context())
		if got := a.limits(t.Context(), c.admin).IdleCommitInterval; got != c.want {
			t.Errorf("%+v: %v, want %v", c.admin, got, c.want)
		}
		a.requestStop()
	}
}
