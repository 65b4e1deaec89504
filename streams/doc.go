// Package streams builds and runs stream applications: the DSL ([Builder], [KStream],
// [KTable]) and the application ([App]).
//
//	b := streams.NewBuilder()
//	lines := streams.Stream(b, "lines", streams.With(serde.String, serde.String))
//	words := streams.FlatMapValues(lines, strings.Fields, serde.String)
//	counts := streams.GroupBy(words, func(_, w string) string { return w }, serde.String).
//		Count(streams.Materialized{Name: "counts"})
//	counts.ToStream().To("counts")
//
//	topology, err := b.Build()
//	app, err := streams.New(topology, streams.Config{AppID: "wordcount", Brokers: brokers, StateDir: dir})
//	err = app.Run(ctx)
//
// Owns: the DSL and the names it gives; the configuration; an application's life: state
// directory, internal topics, membership in the group, workers; what it tells about itself.
//
// Never: touches a record (task and processor do), talks to a client library beside choosing
// the default one.
//
// Called by: users.
//
// Goroutines: a [Builder] belongs to one goroutine. [App.Run] blocks in the caller's goroutine
// and starts one goroutine per worker, all ended when it returns. All other methods of [App]
// may be called by anyone.
//
// Invariants:
//
//	A1  One process at a time uses a state directory.
//	A2  Tasks run only while this process is the group's member that holds the placement
//	    partition, and under the member id with which they were started.
//	A3  A transactional id is on disk before its first use, and every id ever used is
//	    initialised before tasks run.
//	A4  Nothing here ends the host process.
package streams
