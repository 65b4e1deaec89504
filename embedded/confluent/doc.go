// Package confluent is the door of package embedded for confluent-kafka-go. It needs cgo, as that
// client does.
//
//	host, err := confluent.Open(ctx, consumerConfig, embedded.Config{App: "dedupe", StateDir: "state", Stores: []processor.StoreDef{seen}})
//	consumer := host.Consumer()
//	err = consumer.SubscribeTopics([]string{"events"}, host.Rebalance)
//	for ctx.Err() == nil && host.Err() == nil {
//		m, ok := consumer.Poll(100).(*kafka.Message)
//		if !ok {
//			continue
//		}
//		err := host.Process(m, func(t *embedded.Task) error { ... })
//	}
//	err = host.Close(ctx)
//
// # For the maintainer
//
// Owns: the user's *kafka.Consumer, its configuration and its close.
//
// Never: polls, but once more when it closes.
//
// Called by: the user's loop, on one goroutine: Poll and Close of this consumer must not run at once.
//
// Goroutines: none of its own; package embedded calls Begin and Seek from its goroutines.
//
// Invariants:
//
//	D1  The consumer commits nothing and stores no offset: offsets are committed with the state.
//	D2  A partition is assigned to the consumer late, with its offset, when its state is here. One that is
//	    assigned and paused would lose the offset, and a seek before it is active fails.
//	D3  A position outside the log is an error of Poll, never a silent reset.
//	D4  Once the consumer is being closed nothing is asked of it, but that the answer to a rebalance is given with a bound:
//	    librdkafka forgets what it is asked in the moment in which its group ends, and whoever asked would wait for ever.
package confluent
