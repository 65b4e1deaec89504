// Package metrics gives what a running application tells about itself to Prometheus.
//
//	app, err := streams.New(topology, config)
//	prometheus.MustRegister(metrics.New(app))
//
// and for the embedded form
//
//	host, err := franz.Open(ctx, options, config)
//	prometheus.MustRegister(metrics.NewHost(host))
//
// docs/metrics.md names every metric. Several in one process are told apart by a label:
// prometheus.WrapRegistererWith(prometheus.Labels{"app": "word-count"}, registry).MustRegister(metrics.New(app)).
//
// # For the maintainer
//
// Owns: the names, labels and meanings of the metrics; which of several reasons a failure is counted under.
//
// Never: counts by itself, waits, asks a broker, or keeps anything between two collections: a metric is what a snapshot said.
//
// Called by: the registry, on any goroutine, several at once. It starts none.
//
// Invariants:
//
//	M1  The number of series is bounded by workers, tasks and stores of this process, and by tables in this
//	    package; no label has a value from a record, an error's text or a path.
//	M2  A counter is that of one source which counts from zero when it begins anew (a worker), under that source's label: a sum of them
//	    would go down when one begins anew, which reads as a restart of all.
//	M3  What is not known is left out; it is not zero.
package metrics
