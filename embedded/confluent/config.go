//go:build cgo

package confluent

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// setup is what a consumer configuration says, and the one that the consumer is made from.
type setup struct {
	conf     ck.ConfigMap
	group    string
	brokers  []string
	start    kafka.OffsetSpec
	incoming bool // group.protocol=consumer
	rest     map[string]any
}

// ours are those that must have one value, with the reason.
var ours = map[string]string{
	"enable.auto.commit":              "an offset that is committed without its state would count messages that the state does not hold: offsets are committed with it, by the host",
	"auto.commit.enable":              "offsets are committed with the state, by the host",
	"enable.auto.offset.store":        "offsets are committed with the state, by the host",
	"go.events.channel.enable":        "the channel polls by itself, and gives messages after their partition was taken away: use Poll",
	"go.application.rebalance.enable": "pass host.Rebalance to SubscribeTopics instead",
}

// unsecured has librdkafka make tokens by itself, for tests.
const unsecured = "enable.sasl.oauthbearer.unsecure.jwt"

// shared are prefixes of settings that the host's own clients need as well.
var shared = []string{"security.", "ssl.", "sasl.", unsecured, "enable.ssl.", "broker.address.", "client.dns.", "socket.keepalive.", "client.rack", "reconnect.backoff.ms"}

// read checks a consumer's configuration. The map is not changed.
func read(user *ck.ConfigMap) (s setup, err error) {
	if user == nil {
		return s, errors.New("consumer configuration is nil")
	}
	s.conf, s.rest = ck.ConfigMap{}, map[string]any{}
	text := map[string]string{}
	var errs []error
	for k, v := range *user {
		s.conf[k] = v
		value := strings.ToLower(fmt.Sprint(v))
		text[k] = value
		if reason, ok := ours[k]; ok && value != "false" {
			errs = append(errs, fmt.Errorf("%s=%v: it must be false or left out: %s", k, v, reason))
		}
		for _, p := range shared {
			if strings.HasPrefix(k, p) {
				s.rest[k] = v
			}
		}
	}
	if text["isolation.level"] == "read_uncommitted" {
		errs = append(errs, errors.New("isolation.level=read_uncommitted: records of aborted transactions would get into the state; leave it out"))
	}
	if cmp.Or(text["sasl.mechanisms"], text["sasl.mechanism"]) == "oauthbearer" && text["sasl.oauthbearer.method"] != "oidc" && text[unsecured] != "true" {
		errs = append(errs, errors.New("sasl.mechanisms=OAUTHBEARER: tokens that the program gives its consumer (SetOAuthBearerToken) do not reach the clients that the host makes, which would never connect: say sasl.oauthbearer.method=oidc, by which each of them gets its own, or use embedded/franz, whose mechanism they share"))
	}
	s.group, _ = s.conf["group.id"].(string)
	if s.group == "" {
		errs = append(errs, errors.New("group.id is missing: the offsets are this group's"))
	}
	servers, _ := s.conf["bootstrap.servers"].(string)
	if servers == "" {
		servers, _ = s.conf["metadata.broker.list"].(string)
	}
	for b := range strings.SplitSeq(servers, ",") {
		if b = strings.TrimSpace(b); b != "" {
			s.brokers = append(s.brokers, b)
		}
	}
	if len(s.brokers) == 0 {
		errs = append(errs, errors.New("bootstrap.servers is missing"))
	}
	s.incoming = text["group.protocol"] == "consumer"
	switch reset := text["auto.offset.reset"]; reset {
	case "smallest", "earliest", "beginning":
		s.start = kafka.Earliest
	case "", "largest", "latest", "end":
		s.start = kafka.LastStable
	default:
		errs = append(errs, fmt.Errorf("auto.offset.reset=%s: say earliest or latest, where a group without offsets begins", reset))
	}
	s.conf["enable.auto.commit"], s.conf["enable.auto.offset.store"] = false, false
	s.conf["isolation.level"], s.conf["auto.offset.reset"] = "read_committed", "error"
	if _, said := text["enable.metrics.push"]; !said { // librdkafka logs a line about it at each start
		s.conf["enable.metrics.push"] = false
	}
	if err := errors.Join(errs...); err != nil {
		return s, fmt.Errorf("consumer configuration: %w", err)
	}
	return s, nil
}
