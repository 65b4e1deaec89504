package processor_test

import (
	"fmt"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// totals keeps what each customer has spent, and sends it out once a minute.
type totals struct{}

var spent = processor.KeyValue("spent", serde.String, serde.Int64)

func newTotals() *totals { return &totals{} }

func (*totals) Init(ctx processor.Context[string, int64]) error {
	ctx.Schedule(time.Minute, processor.StreamTime, func(now time.Time) error {
		for e, err := range spent.In(ctx).All() {
			if err != nil {
				return err
			}
			if err := ctx.Forward(processor.Record[string, int64]{Key: e.Key, Value: e.Value, Timestamp: now}); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

func (*totals) Process(ctx processor.Context[string, int64], r processor.Record[string, int64]) error {
	s := spent.In(ctx)
	sum, _, err := s.Get(r.Key)
	if err != nil {
		return err
	}
	return s.Put(r.Key, sum+r.Value)
}

// A topology of a source, a processor with a store, and a sink, built by hand.
func ExampleTopology() {
	t := processor.NewTopology()
	processor.AddSource(t, "orders", serde.String, serde.Int64, "orders")
	processor.AddProcessor(t, "totals", newTotals, []string{"orders"}, spent)
	processor.AddSink(t, "out", "totals", serde.String, serde.Int64, "totals")
	if err := t.Build(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(t.Describe())
	// Output:
	// Topologies:
	//    Sub-topology: 0
	//     Source: orders (topics: [orders])
	//       --> totals
	//     Processor: totals (stores: [spent])
	//       --> out
	//       <-- orders
	//     Sink: out (topic: totals)
	//       <-- totals
}

// A null of a type without nil is the zero value with a mark; HasKey and HasValue tell.
func ExampleRecord() {
	gone := processor.WithNullValue[int64](processor.Record[string, int64]{Key: "k", Value: 7})
	zero := processor.WithValue(gone, int64(0))
	fmt.Println(gone.HasValue(), zero.HasValue())
	gone.Value = 3 // any other value than the zero one needs no help
	fmt.Println(gone.HasValue())
	// Output:
	// false true
	// true
}
