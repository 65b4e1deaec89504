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
// # Building
//
// An operator that gives a stream or a table other types is a function ([MapValues], [GroupBy],
// [MapTableValues], [Process]), every other one a method. What is wrong is told by [Builder.Build], all at once and
// with the names of the nodes; nodes, stores and internal topics have the names that Kafka Streams
// gives them. Functions must not keep state: that belongs into stores, through [Process].
//
// # Running
//
// [App.Run] blocks until its context ends or [App.Close] is called; it commits what was processed
// and returns nil, or the reason why the application cannot go on: a record that cannot be
// processed (with topic, partition and offset), a store that fails, a topic that is missing.
// It never ends the process. A broker that is away is waited for. [App.CaughtUp] waits until all
// present input is processed and committed; [App.Status] and Config.StateListener tell where it is.
//
// Input and output topics must exist; internal ones are created. Several processes may run one
// application, each with a state directory of its own: one of them runs the tasks, the others
// take over when it is gone.
//
// # Guarantees
//
// State is exact, always: after a crash every record has been counted once. Outputs are
// repeated at most as far as one commit interval under [AtLeastOnce] (the default), and never under
// [ExactlyOnce], for readers that use read_committed; there they appear with the commit.
//
// # Clients
//
// The default client is franz-go. For confluent-kafka-go set Client: confluent.Client{} (package
// kafka/confluent; it needs cgo). Settings that both know are in Config.Settings, those of one library in
// its Client.
//
// # For the maintainer
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
//	A3  A transactional id is on disk before its first use. Every id ever used and not used now
//	    is initialised before tasks run; a worker initialises its own before it opens a task.
//	A4  Nothing here ends the host process.
package streams
