package streams_test

import (
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// A backlog in two topics is processed in the order of the timestamps, however much larger one of them
// is and whichever the broker sends first; and again after a restart in its middle.
func TestBacklogIsMerged(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		other := e.in + "-other"
		e.create(other, 2)
		both := streams.With(serde.String, serde.String)
		for round := range 2 {
			var records []kafka.Record
			for n := range int64(25_000) {
				at := 1 + int64(round)*1_000_000 + 2*n
				records = append(records, kafka.Record{Topic: e.in, Timestamp: at, Key: []byte("k"), Value: make([]byte, 200)})
				if n%100 == 0 {
					records = append(records, kafka.Record{Topic: other, Timestamp: at + 1, Key: []byte("k"), Value: []byte("x")})
				}
			}
			e.produceRecords(records...)
			b := streams.NewBuilder()
			late := processor.Func[string, string, string, string](func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
				if r.Timestamp.Before(ctx.StreamTime()) {
					return ctx.Forward(processor.WithValue(r, "late"))
				}
				return nil
			})
			merged := streams.Stream(b, e.in, both).Merge(streams.Stream(b, other, both))
			streams.Process(merged, func() processor.Processor[string, string, string, string] { return late }, both).To(e.out)
			topology, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			app := e.start(topology, e.config())
			app.catchUp()
			app.close()
			if late := e.read(e.out); len(late) > 0 {
				t.Fatalf("round %d: %d records came late", round, len(late))
			}
		}
	})
}
