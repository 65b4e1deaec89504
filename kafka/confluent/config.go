//go:build cgo

package confluent

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

const (
	defaultLinger         = 5 * time.Millisecond
	defaultRequestTimeout = 10 * time.Second
	defaultFetchMaxBytes  = 32 << 20
	defaultClientID       = "tidemark"
)

// refused are the librdkafka settings that a user may not set, each with the reason.
var refused = map[string]string{
	"bootstrap.servers":                     "set Settings.Brokers",
	"metadata.broker.list":                  "set Settings.Brokers",
	"client.id":                             "set Settings.ClientID",
	"compression.type":                      "set Settings.Compression",
	"compression.codec":                     "set Settings.Compression",
	"linger.ms":                             "set Settings.Linger",
	"queue.buffering.max.ms":                "set Settings.Linger",
	"socket.timeout.ms":                     "set Settings.RequestTimeout",
	"queued.max.messages.kbytes":            "set Settings.FetchMaxBytes",
	"queue.buffering.max.messages":          "set ProducerConfig.MaxBufferedRecords",
	"message.timeout.ms":                    "set ProducerConfig.DeliveryTimeout",
	"delivery.timeout.ms":                   "set ProducerConfig.DeliveryTimeout",
	"transactional.id":                      "each worker has its own; it is what fences a former owner",
	"transaction.timeout.ms":                "set TransactionalConfig.Timeout",
	"session.timeout.ms":                    "set MembershipConfig.SessionTimeout",
	"heartbeat.interval.ms":                 "set MembershipConfig.HeartbeatInterval",
	"group.id":                              "the application id is the group; data consumers belong to none",
	"group.instance.id":                     "it is the process id that the state directory keeps",
	"group.protocol":                        "only the classic protocol gives the generation that commits are fenced with",
	"group.remote.assignor":                 "only the classic protocol gives the generation that commits are fenced with",
	"partition.assignment.strategy":         "all members of the group must use the same one",
	"max.poll.interval.ms":                  "the membership polls in its own goroutine, whatever the application does",
	"enable.auto.commit":                    "offsets are committed in transactions only",
	"auto.commit.enable":                    "offsets are committed in transactions only",
	"enable.auto.offset.store":              "offsets are committed in transactions only",
	"auto.offset.reset":                     "a position outside the log must be an error; records would be lost silently",
	"enable.partition.eof":                  "positions behind transaction markers are known from it",
	"isolation.level":                       "each part needs its own",
	"enable.idempotence":                    "without it a retry writes records twice or out of order",
	"enable.gapless.guarantee":              "the producer would end at the first record that fails",
	"acks":                                  "an acknowledged record must be on all in-sync replicas",
	"request.required.acks":                 "an acknowledged record must be on all in-sync replicas",
	"delivery.report.only.error":            "every record is counted by its delivery report",
	"dr_cb":                                 "every record is counted by its delivery report",
	"dr_msg_cb":                             "every record is counted by its delivery report",
	"allow.auto.create.topics":              "a topic made by accident has the wrong number of partitions",
	"log.queue":                             "log lines go to Settings.Logger",
	"default.topic.config":                  "set the topic settings at the top level",
	"consume.callback.max.messages":         "records are polled",
	"topic.metadata.propagation.max.ms":     "it bounds how long an unknown topic goes unreported",
	"max.in.flight":                         "the idempotent producer orders at most 5; leave it to librdkafka",
	"max.in.flight.requests.per.connection": "the idempotent producer orders at most 5; leave it to librdkafka",
}

// milliseconds writes d as librdkafka reads durations.
func milliseconds(d time.Duration) int { return int(d.Milliseconds()) }

func invalid(op, format string, args ...any) *kafka.Error {
	return &kafka.Error{Class: kafka.ClassInvalid, Op: op, Err: fmt.Errorf(format, args...)}
}

// withDefaults fills in the documented defaults.
func withDefaults(s kafka.Settings) kafka.Settings {
	if s.ClientID == "" {
		s.ClientID = defaultClientID
	}
	if s.Linger == 0 {
		s.Linger = defaultLinger
	}
	if s.RequestTimeout == 0 {
		s.RequestTimeout = defaultRequestTimeout
	}
	if s.FetchMaxBytes == 0 {
		s.FetchMaxBytes = defaultFetchMaxBytes
	}
	return s
}

// base is what the parts have in common. part is the suffix of the client id.
func base(s kafka.Settings, part string) (ck.ConfigMap, error) {
	if len(s.Brokers) == 0 {
		return nil, errors.New("no broker address: set Settings.Brokers to at least one host:port")
	}
	conf := ck.ConfigMap{
		"bootstrap.servers": strings.Join(s.Brokers, ","),
		"client.id":         s.ClientID + "-" + part,
		"socket.timeout.ms": milliseconds(s.RequestTimeout),
		// 10 s by default: a commit repeated after an outage took 7.6 s.
		"reconnect.backoff.max.ms": 1000,
		"socket.nagle.disable":     true,
		"enable.metrics.push":      false,
		"log.connection.close":     false,
		// How long a topic may be unknown before that is an error (30 s by default).
		"topic.metadata.propagation.max.ms": 3000,
		// The default is false for consumers, but true for producers.
		"allow.auto.create.topics": false,
	}
	if err := secure(conf, s); err != nil {
		return nil, err
	}
	return conf, nil
}

// extend applies the user's own settings last, and refuses those that break the contract.
func (c Client) extend(conf ck.ConfigMap) error {
	var bad []string
	for key, value := range c.Config {
		reason, no := refused[key]
		if !no && strings.HasPrefix(key, "go.") {
			reason, no = "it changes how the library and this package hand over events", true
		}
		if !no && strings.HasPrefix(key, "{topic}.") {
			reason, no = "set the topic settings at the top level", true
		}
		if no {
			bad = append(bad, fmt.Sprintf("%s (%s)", key, reason))
			continue
		}
		switch value.(type) {
		case string, bool, int:
			conf[key] = value
		default:
			bad = append(bad, fmt.Sprintf("%s (a %T; string, bool or int is wanted)", key, value))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad) // the map's order would make the text differ from run to run
	return errors.New("confluent.Client.Config must not contain: " + strings.Join(bad, "; "))
}

// consumerConf configures a consumer that assigns by hand.
func (c Client) consumerConf(s kafka.Settings, cfg kafka.ConsumerConfig) (ck.ConfigMap, error) {
	conf, err := base(s, "consumer")
	if err != nil {
		return nil, err
	}
	// librdkafka has no consumer without a group id. This one is never joined: nothing is
	// subscribed, and nothing committed.
	conf["group.id"] = s.ClientID + "-assigned-by-hand"
	conf["isolation.level"] = "read_committed"
	if cfg.ReadUncommitted {
		conf["isolation.level"] = "read_uncommitted"
	}
	conf["enable.auto.commit"] = false
	conf["enable.auto.offset.store"] = false
	conf["auto.offset.reset"] = "error"
	conf["enable.partition.eof"] = true
	conf["check.crcs"] = true
	// The default of 1000 stops fetching for a second whenever the queue is full: 3.7 to
	// 19 times slower.
	conf["fetch.queue.backoff.ms"] = 5
	conf["queued.max.messages.kbytes"] = max(1, s.FetchMaxBytes>>10)
	// The end of a partition, and with it a position behind transaction markers, shows only
	// in the answer of a fetch that found nothing: after this time (500 ms by default).
	conf["fetch.wait.max.ms"] = 100
	return conf, c.extend(conf)
}

// producerConf configures an idempotent producer.
func (c Client) producerConf(s kafka.Settings, part string, cfg kafka.ProducerConfig) (ck.ConfigMap, error) {
	conf, err := base(s, part)
	if err != nil {
		return nil, err
	}
	conf["enable.idempotence"] = true
	conf["acks"] = "all"
	conf["linger.ms"] = strconv.FormatFloat(float64(s.Linger)/float64(time.Millisecond), 'f', -1, 64)
	conf["request.timeout.ms"] = milliseconds(s.RequestTimeout)
	conf["message.timeout.ms"] = milliseconds(cfg.DeliveryTimeout)
	// The bound is kept by the ledger. librdkafka counts a record until the binding has
	// passed its report on, and so somewhat longer.
	conf["queue.buffering.max.messages"] = min(2*cfg.MaxBufferedRecords+1000, 10_000_000)
	// How large a record may be is the topic's decision (max.message.bytes). Batches stay
	// at batch.size.
	conf["message.max.bytes"] = 100 << 20
	// Reports without key and value are the cheapest that still tell every failure; the
	// two channels would take 24 MB with their default sizes.
	conf["go.delivery.report.fields"] = "none"
	conf["go.events.channel.size"] = 4096
	conf["go.produce.channel.size"] = 1
	if s.Compression != "" {
		conf["compression.type"] = s.Compression
	}
	return conf, c.extend(conf)
}

// transactionalConf configures a transactional producer.
func (c Client) transactionalConf(s kafka.Settings, cfg kafka.TransactionalConfig) (ck.ConfigMap, error) {
	if cfg.ID == "" {
		return nil, errors.New("no transactional id: set TransactionalConfig.ID")
	}
	// librdkafka refuses a message or socket timeout above the transaction's: by then the
	// broker has aborted the transaction anyway.
	cfg.DeliveryTimeout = min(cfg.DeliveryTimeout, cfg.Timeout)
	s.RequestTimeout = min(s.RequestTimeout, max(cfg.Timeout-100*time.Millisecond, 100*time.Millisecond))
	conf, err := c.producerConf(s, "transactional", cfg.ProducerConfig)
	if err != nil {
		return nil, err
	}
	conf["transactional.id"] = cfg.ID
	// A transaction that begins right after another's commit is told to wait for its
	// markers, which takes a few milliseconds and not the default 100.
	conf["retry.backoff.ms"] = 5
	conf["transaction.timeout.ms"] = milliseconds(cfg.Timeout)
	return conf, nil
}

// membershipConf configures the consumer that is a member of the group.
func (c Client) membershipConf(s kafka.Settings, cfg kafka.MembershipConfig) (ck.ConfigMap, error) {
	if cfg.Group == "" || cfg.Topic == "" {
		return nil, errors.New("MembershipConfig needs Group and Topic")
	}
	conf, err := base(s, "member")
	if err != nil {
		return nil, err
	}
	conf["group.id"] = cfg.Group
	if cfg.InstanceID != "" {
		conf["group.instance.id"] = cfg.InstanceID
	}
	conf["group.protocol"] = "classic"
	// Cooperative, so that who holds the placement partition keeps it when others join.
	conf["partition.assignment.strategy"] = "cooperative-sticky"
	conf["session.timeout.ms"] = milliseconds(cfg.SessionTimeout)
	conf["heartbeat.interval.ms"] = milliseconds(cfg.HeartbeatInterval)
	conf["max.poll.interval.ms"] = max(300_000, milliseconds(cfg.SessionTimeout))
	conf["enable.auto.commit"] = false
	conf["enable.auto.offset.store"] = false
	conf["auto.offset.reset"] = "latest"
	// A placement topic that comes into being late is seen after this (5 minutes by default).
	conf["topic.metadata.refresh.interval.ms"] = 10_000
	return conf, c.extend(conf)
}
