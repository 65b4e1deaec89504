// Package processor is what a stream application computes: records with types, processors,
// stores that are declared once and opened by handle, and the topology that connects them.
//
// A processor is a type with a method Process. It forwards records to what stands behind it,
// and reaches the stores whose handles were named where it was added:
//
//	var seen = processor.KeyValue("seen", serde.String, serde.Int64)
//
//	type dedupe struct{}
//
//	func newDedupe() dedupe { return dedupe{} }
//
//	func (dedupe) Process(ctx processor.Context[string, string], r processor.Record[string, string]) error {
//		if !r.HasKey() { // a store cannot tell a null key from an empty one
//			return ctx.Forward(r)
//		}
//		s := seen.In(ctx)
//		if _, dup, err := s.Get(r.Key); dup || err != nil {
//			return err
//		}
//		if err := s.Put(r.Key, r.Timestamp.UnixMilli()); err != nil {
//			return err
//		}
//		return ctx.Forward(r)
//	}
//
// It stands in a stream of package streams, where naming the handle connects the store, or in
// a [Topology] built by hand:
//
//	unique := streams.Process(in, newDedupe, streams.With(serde.String, serde.String), seen)
//
// # Stores
//
// A handle says what the store is, and its methods change that: each gives another handle.
//
//	var (
//		seen   = processor.KeyValue("seen", serde.String, serde.Int64).InMemory()
//		hits   = processor.Window("hits", serde.String, serde.Int64, time.Minute, 24*time.Hour) // size, retention
//		visits = processor.Session("visits", serde.String, serde.Int64, 24*time.Hour)           // retention
//		prices = processor.Versioned("prices", serde.String, serde.Float64, 24*time.Hour)       // history
//	)
//
//	for w, err := range hits.In(ctx).Fetch(r.Key, r.Timestamp.Add(-time.Hour), r.Timestamp) {
//		if err != nil {
//			return err
//		}
//		... // w.Key, w.Start, w.End, w.Value
//	}
//
// Windows, sessions and versions expire by the times written to their store, not by the clock.
// What comes later than that is dropped, and counted as a dropped record.
//
// # For the maintainer
//
// Owns: [Record], [Processor] and [Context]; the store handles ([KeyValue],
// [TimestampedKeyValue], [Window], [TimestampedWindow], [Session], [Versioned]) and the typed
// stores they open; [Topology], its check, its sub-topologies and its description; [Instance],
// one task's running copy of a sub-topology.
//
// Never: talks to Kafka, decides when to commit, starts a goroutine, keeps state outside the
// stores it was given.
//
// Called by: users (to write processors), streams (whose DSL builds topologies of this
// package), task (which runs instances), the
// embedded form (which opens stores through the same handles).
//
// Goroutine: a [Topology] is built by one goroutine and immutable after [Topology.Build]. An
// [Instance] and all below it (contexts, stores, processors) belong to the goroutine that
// owns the task.
//
// Invariants:
//
//	P1  Types are checked when the topology is built: a record is never boxed or type-asserted
//	    on its way from node to node.
//	P2  Null is not a value: it is marked in the record, and a processor can tell. See [Record].
//	P3  A processor reaches only the stores connected to it.
//	P4  Everything a record caused (writes, outputs) has happened when [Instance.Process]
//	    returns; nothing is kept for later but punctuations, and updates of tables with caching.
//	P5  What a [Cache] holds back is forwarded before the commit of the interval in which it was
//	    put, and gone with the instance: nothing of it outlives a commit.
package processor
