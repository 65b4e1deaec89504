//go:build cgo

package confluent

import (
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
)

func TestConfigRefusesWhatBreaksTheContract(t *testing.T) {
	settings := kafka.Settings{Brokers: []string{"127.0.0.1:1"}}
	for key, reason := range refused {
		_, err := Client{Config: map[string]any{key: "x"}}.NewProducer(settings, kafka.ProducerConfig{})
		if !kafka.IsClass(err, kafka.ClassInvalid) || !strings.Contains(err.Error(), key+" ("+reason+")") {
			t.Errorf("%s: %v", key, err)
		}
	}
	for key, value := range map[string]any{
		"go.batch.producer": true, "go.delivery.reports": false, "{topic}.acks": 1, // not in the table, but of refused kinds
		"message.max.bytes": int64(1), // of a type that the binding does not know
		"no.such.setting":   "x",      // refused by librdkafka itself
	} {
		_, err := Client{Config: map[string]any{key: value}}.NewConsumer(settings, kafka.ConsumerConfig{})
		if !kafka.IsClass(err, kafka.ClassInvalid) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// Pitfalls that are only a matter of a setting.
func TestConfigIsWhatTheContractNeeds(t *testing.T) {
	s := withDefaults(kafka.Settings{Brokers: []string{"a:1", "b:2"}})
	c := Client{Config: map[string]any{"fetch.min.bytes": 7}}
	consumer, err := c.consumerConf(s, kafka.ConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	producer, err := c.producerConf(s, "producer", producerDefaults(kafka.ProducerConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	txn := kafka.TransactionalConfig{ID: "id", Timeout: defaultTxnTimeout, ProducerConfig: producerDefaults(kafka.ProducerConfig{})}
	transactional, err := c.transactionalConf(s, txn)
	if err != nil {
		t.Fatal(err)
	}
	member, err := c.membershipConf(s, kafka.MembershipConfig{Group: "g", Topic: "t", SessionTimeout: 10e9, HeartbeatInterval: 3e9})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		conf  map[string]any
		key   string
		value any
	}{
		{asMap(consumer), "bootstrap.servers", "a:1,b:2"},
		{asMap(consumer), "fetch.min.bytes", 7}, // the user's own, applied last
		{asMap(consumer), "fetch.queue.backoff.ms", 5},
		{asMap(consumer), "auto.offset.reset", "error"},
		{asMap(consumer), "enable.partition.eof", true},
		{asMap(consumer), "isolation.level", "read_committed"},
		{asMap(consumer), "enable.auto.commit", false},
		{asMap(consumer), "enable.auto.offset.store", false},
		{asMap(consumer), "allow.auto.create.topics", false},
		{asMap(producer), "enable.idempotence", true},
		{asMap(producer), "acks", "all"},
		{asMap(producer), "linger.ms", "5"},
		{asMap(producer), "allow.auto.create.topics", false},
		{asMap(producer), "go.delivery.report.fields", "none"},
		{asMap(transactional), "message.timeout.ms", 10_000}, // not above the transaction's
		{asMap(transactional), "socket.timeout.ms", 9_900},
		{asMap(member), "group.protocol", "classic"},
		{asMap(member), "partition.assignment.strategy", "cooperative-sticky"},
	} {
		if got := want.conf[want.key]; got != want.value {
			t.Errorf("%s is %v, want %v", want.key, got, want.value)
		}
	}
	if producer["go.delivery.reports"] != nil || producer["delivery.report.only.error"] != nil {
		t.Error("every record must have a delivery report")
	}
}

func asMap[M ~map[string]V, V any](m M) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func TestNewFailsWithoutBrokers(t *testing.T) {
	_, err := Client{}.NewConsumer(kafka.Settings{}, kafka.ConsumerConfig{})
	if !kafka.IsClass(err, kafka.ClassInvalid) || !strings.Contains(err.Error(), "Settings.Brokers") {
		t.Errorf("got %v", err)
	}
}
