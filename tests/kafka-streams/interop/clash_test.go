package interop

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark-streams/tidemark/internal/testlog"
	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/streams"
)

// Both at once is impossible, and harms nobody: the group takes only one kind of member, and
// the newcomer is told so.
func TestBothAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range clients {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			bothAtOnce(t, newEnv(t, c, streams.ExactlyOnce))
		})
	}
}

func bothAtOnce(t *testing.T, e *env) {
	random := testseed.New(t)
	ks := e.kafkaStreams(e.dir("java"), "session.timeout.ms=3000", "heartbeat.interval.ms=500")
	ks.await("state RUNNING")
	state := e.dir("tidemark")
	var app *tidemark
	if e.client.Name() == (franz.Client{}).Name() {
		e.tidemark(state).fails("INCONSISTENT_GROUP_PROTOCOL", "if another program uses this group", "wait until the group is empty")
	} else {
		// librdkafka tries for ever and says nothing.
		var log testlog.Log
		cfg := e.config(state)
		cfg.Logger = log.Logger()
		app = e.run(cfg)
		e.until("the log says who is in the group", func() string {
			if text := log.String(); !strings.Contains(text, "if its members are another program") || !strings.Contains(text, e.app+"-") || !strings.Contains(text, "StreamThread-1") {
				return text
			}
			return ""
		})
	}
	e.produce(newInput(random, 0))
	e.awaitOutputs()
	// As KafkaStreams.close() does: the members stay in the group until their session is over.
	ks.close("remain")
	if app == nil {
		e.awaitEmptyGroup()
		app = e.tidemark(state)
	}
	e.produce(newInput(random, 1))
	e.awaitOutputs()
	e.kafkaStreams(e.dir("late")).await("failed InconsistentGroupProtocolException")
	e.produce(newInput(random, 2))
	app.close()
	e.checkChangelogs()
	e.checkOutputs()
}

// Kafka Streams is killed inside a transaction: Tidemark waits until the broker has aborted
// it, and counts on from the last commit.
func TestKafkaStreamsKilled(t *testing.T) {
	t.Parallel()
	e := newEnv(t, franz.Client{}, streams.ExactlyOnce)
	random := testseed.New(t)
	ks := e.kafkaStreams(e.dir("java"), "session.timeout.ms=3000", "heartbeat.interval.ms=500", "transaction.timeout.ms=8000", "commit.interval.ms=3000")
	e.produce(newInput(random, 0))
	e.awaitOutputs()
	e.produce(newInput(random, 1))
	e.until("a transaction is open", func() string {
		return e.openIn(e.changelog("plain"))
	})
	ks.kill()

	e.awaitEmptyGroup()
	app := e.tidemark(e.dir("tidemark"))
	app.close()
	e.checkChangelogs()
	e.checkOutputs()
}

// openIn is empty if an open transaction has records in the topic.
func (e *env) openIn(topic string) (missing string) {
	e.t.Helper()
	stable, err := e.adm.ListCommittedOffsets(e.ctx(), topic)
	if err != nil {
		return err.Error()
	}
	ends, err := e.adm.ListEndOffsets(e.ctx(), topic)
	if err != nil {
		return err.Error()
	}
	missing = "no open transaction in " + topic
	ends.Each(func(end kadm.ListedOffset) {
		if s, ok := stable.Lookup(topic, end.Partition); ok && s.Offset < end.Offset {
			missing = ""
		}
	})
	return missing
}

// The same group under Kafka Streams' newer protocol.
func TestStreamsProtocol(t *testing.T) {
	t.Parallel()
	e := newEnv(t, franz.Client{}, streams.ExactlyOnce)
	random := testseed.New(t)
	java := e.dir("java")
	ks := e.kafkaStreams(java, "group.protocol=streams")
	e.produce(newInput(random, 0))
	e.awaitOutputs()
	ks.close("leave")

	app := e.tidemark(e.dir("tidemark"))
	e.produce(newInput(random, 1))
	app.close()
	e.awaitEmptyGroup()
	ks = e.kafkaStreams(java, "group.protocol=streams")
	e.produce(newInput(random, 2))
	e.awaitOutputs()
	ks.close("leave")
	e.checkChangelogs()
	e.checkOutputs()
}
