package streams

import (
	"context"
	"strconv"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/task"
)

// limits gives the configured limits, with an IdleCommitInterval that the broker's retention of offsets
// allows: a quarter of it at most. The members subscribe to the placement topic alone, so that the broker
// expires the offsets of the sources although the group lives. An application that may not read the
// broker's configuration goes by its own.
func (a *App) limits(ctx context.Context, admin kafka.Admin) task.Limits {
	l := a.cfg.Limits
	l.Defaults()
	broker, ok := admin.(kafka.BrokerConfigs)
	if !ok {
		return l
	}
	ctx, unhook := a.untilStopped(ctx)
	defer unhook()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	configs, err := broker.BrokerConfigs(ctx)
	if err != nil {
		a.log.Debug("the broker does not tell how long it keeps offsets", "error", err)
		return l
	}
	const name = "offsets.retention.minutes"
	minutes, err := strconv.ParseInt(configs[name], 10, 32)
	if err != nil || minutes <= 0 {
		return l
	}
	if most := time.Duration(minutes) * time.Minute / 4; most < l.IdleCommitInterval {
		a.log.Info("idle tasks commit more often, because the broker keeps offsets only for a short time", name, minutes, "interval", most)
		l.IdleCommitInterval = most
	}
	return l
}
