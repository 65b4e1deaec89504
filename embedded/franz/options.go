package franz

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/tidemark-streams/tidemark/kafka"
)

type callback = func(context.Context, *kgo.Client, map[string][]int32)

// options are what a user's options say.
type options struct {
	group, instance         string
	brokers                 []string
	start                   kafka.OffsetSpec
	byHand                  bool      // there are no topics: Host.Assign gives partitions
	shared                  []kgo.Opt // what the host's own clients need as well
	assigned, revoked, lost callback  // the user's
}

// read asks a client that cannot do anything for what was given to it: options tell nothing by themselves.
func read(opts []kgo.Opt) (o options, err error) {
	nothing, cancel := context.WithCancel(context.Background())
	cancel()
	committed := kgo.FetchIsolationLevel(kgo.ReadCommitted()) // before the user's: the client's own default does not count
	probe, err := kgo.NewClient(append(append([]kgo.Opt{committed}, opts...), kgo.DisableAutoCommit(), kgo.WithContext(nothing))...)
	if err != nil {
		return o, fmt.Errorf("%w (offsets are committed with the state, by the host: leave options for automatic commits out; kgo.ConsumerGroup must not be missing)", err)
	}
	defer probe.CloseAllowingRebalance()
	value(probe, kgo.ConsumerGroup, &o.group)
	value(probe, kgo.InstanceID, &o.instance)
	value(probe, kgo.SeedBrokers, &o.brokers)
	value(probe, kgo.OnPartitionsAssigned, &o.assigned)
	value(probe, kgo.OnPartitionsRevoked, &o.revoked)
	value(probe, kgo.OnPartitionsLost, &o.lost)
	if o.group == "" {
		return o, errors.New("kgo.ConsumerGroup is missing: the offsets are this group's")
	}
	isolation := int8(1)
	if value(probe, kgo.FetchIsolationLevel, &isolation); isolation == 0 {
		return o, errors.New("kgo.FetchIsolationLevel is ReadUncommitted: records of aborted transactions would get into the state; leave it out")
	}
	var start kgo.Offset
	value(probe, kgo.ConsumeStartOffset, &start)
	switch start.EpochOffset().Offset {
	case -2:
		o.start = kafka.Earliest
	case -1:
		o.start = kafka.LastStable
	default:
		return o, fmt.Errorf("kgo.ConsumeStartOffset is %v: say AtStart or AtEnd, where a group without offsets begins", start)
	}
	var topics []string
	value(probe, kgo.ConsumeTopics, &topics)
	o.byHand = len(topics) == 0
	o.share(probe)
	return o, nil
}

// share keeps the options that connections need. A dialer that was made of a TLS configuration is
// told apart by that.
func (o *options) share(probe *kgo.Client) {
	var dialTLS *tls.Config
	var dial func(ctx context.Context, network, host string) (net.Conn, error)
	var mechanisms []sasl.Mechanism
	value(probe, kgo.DialTLSConfig, &dialTLS)
	value(probe, kgo.Dialer, &dial)
	value(probe, kgo.SASL, &mechanisms)
	switch {
	case dialTLS != nil:
		o.shared = append(o.shared, kgo.DialTLSConfig(dialTLS))
	case dial != nil:
		o.shared = append(o.shared, kgo.Dialer(dial))
	}
	if len(mechanisms) > 0 {
		o.shared = append(o.shared, kgo.SASL(mechanisms...))
	}
}

// value sets into, if the option has a value of its type.
func value[T any](probe *kgo.Client, option any, into *T) {
	if v, ok := probe.OptValue(option).(T); ok {
		*into = v
	}
}
