package interop

import (
	"errors"
	"maps"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// Kafka Streams counts, Tidemark takes over with nothing but the changelogs, and Kafka Streams
// takes it back with the state directory that it left.
func TestKafkaStreamsThenTidemark(t *testing.T) {
	t.Parallel()
	each(t, streams.ExactlyOnce, func(t *testing.T, e *env) {
		random := testseed.New(t)
		java := e.dir("java")
		e.produce(newInput(random, 0))
		ks := e.kafkaStreams(java)
		e.awaitOutputs()
		ks.close("leave")
		e.checkChangelogs()
		e.checkMetadata(true)

		e.awaitEmptyGroup()
		e.produce(newInput(random, 1))
		app := e.tidemark(e.dir("tidemark"))
		app.close()
		for _, store := range allStores {
			if app.restored()[store] == 0 {
				t.Errorf("nothing was restored into %s", store)
			}
		}
		e.awaitOutputs()
		e.checkChangelogs()
		e.checkMetadata(false)

		e.awaitEmptyGroup()
		e.produce(newInput(random, 2))
		ks = e.kafkaStreams(java)
		e.awaitOutputs()
		ks.close("leave")
		e.checkChangelogs()
		e.checkOutputs()
	})
}

// checkMetadata looks at the offsets of the group: who wrote them, and whether Tidemark
// understands the partition times.
func (e *env) checkMetadata(foreign bool) {
	e.t.Helper()
	offsets, err := e.adm.FetchOffsets(e.ctx(), e.app)
	if err != nil {
		e.t.Fatal(err)
	}
	for tp, want := range e.times {
		o, ok := offsets.Lookup(tp.topic, tp.number)
		if !ok {
			e.t.Errorf("no offset of %v", tp)
			continue
		}
		m, err := task.DecodeMetadata(o.Metadata)
		if foreign != errors.Is(err, task.ErrForeignMetadata) || (err != nil && !foreign) || m.PartitionTime != want {
			e.t.Errorf("offset of %v: partition time %d, want %d; %v", tp, m.PartitionTime, want, err)
		}
	}
}

// Tidemark counts, Kafka Streams takes over with nothing but the changelogs, and Tidemark
// takes it back.
func TestTidemarkThenKafkaStreams(t *testing.T) {
	t.Parallel()
	each(t, streams.AtLeastOnce, func(t *testing.T, e *env) {
		random := testseed.New(t)
		state := e.dir("tidemark")
		e.produce(newInput(random, 0))
		e.tidemark(state).close()
		e.checkChangelogs()
		// A crash of ours may leave such a tail.
		e.produceAborted(
			&kgo.Record{Topic: e.changelog("counts"), Key: []byte("w1"), Value: []byte("never ok")},
			&kgo.Record{Topic: e.repartition(), Key: []byte("w1"), Value: []byte("w1")})
		times := maps.Clone(e.times)

		e.awaitEmptyGroup()
		e.produce(newInput(random, 1))
		ks := e.kafkaStreams(e.dir("java"), "isolation.level=read_committed")
		e.awaitOutputs()
		for tp, known := range ks.firstTimes() {
			if known != times[tp] {
				t.Errorf("Kafka Streams begins %v with the time %d, want %d", tp, known, times[tp])
			}
		}
		ks.close("leave")
		for _, store := range allStores {
			if ks.restored()[store] == 0 {
				t.Errorf("Kafka Streams restored nothing into %s", store)
			}
		}
		e.checkChangelogs()

		e.produce(newInput(random, 2))
		// What it knew is older than what Kafka Streams committed, and cannot be told from a reset.
		e.tidemark(state).fails("not all committed by Tidemark", "delete the task's directory")
		e.awaitEmptyGroup()
		e.tidemark(e.dir("new")).close()
		e.checkChangelogs()
		e.checkOutputs()
	})
}
