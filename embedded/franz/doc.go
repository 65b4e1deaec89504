// Package franz is the door of package embedded for franz-go.
//
//	host, err := franz.Open(ctx, []kgo.Opt{
//		kgo.SeedBrokers("localhost:9092"), kgo.ConsumerGroup("dedupe"), kgo.ConsumeTopics("events"),
//	}, embedded.Config{App: "dedupe", StateDir: "state", Stores: []processor.StoreDef{seen}})
//	polling, stop := host.Context(ctx) // ends when the host fails
//	defer stop()
//	for polling.Err() == nil {
//		fetches := host.Client().PollFetches(polling)
//		fetches.EachRecord(func(r *kgo.Record) {
//			err := host.Process(r, func(t *embedded.Task) error { ... })
//			...
//		})
//	}
//	err = errors.Join(host.Err(), host.Close(ctx))
//
// Records of a batch that follow one that failed, or whose partition was taken away meanwhile, may be given to
// Process all the same: it leaves out what will come again.
//
// # For the maintainer
//
// Owns: the user's *kgo.Client, its rebalance callbacks and its close.
//
// Never: polls.
//
// Called by: the user's loop, and by franz-go's own goroutine in rebalance callbacks.
//
// Goroutines: none of its own; package embedded calls Begin and Seek from its goroutines.
//
// Invariants:
//
//	D1  The client commits nothing: offsets are committed with the state.
//	D2  A partition is paused in the callback that assigns it, and resumed, set to its position, when its state is here.
package franz
