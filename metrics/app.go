package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// App is what [New] asks of an application; a *streams.App has it.
type App interface {
	// Every method gives a snapshot at once, in every state of the application; nil is not known yet.
	Status() streams.Status
	StoreStats() statestore.ResourceStats
	LocalOffsets() []offsetcache.Task
	Scan() *offsetcache.Scan
}

// Host is what [NewHost] asks of the embedded form; the hosts of embedded/franz and embedded/confluent, and *embedded.Host,
// have it.
type Host interface {
	// Every method gives a snapshot at once, in every state of the host.
	Status() task.Status
	StoreStats() statestore.ResourceStats
	Offsets() []offsetcache.Task
	Scan() *offsetcache.Scan
}

var (
	appStates = func() (names []string) {
		for s := streams.Created; s <= streams.Failed; s++ {
			names = append(names, s.String())
		}
		return names
	}()
	appState = gauge("app_state", "1 for the state that the application is in, 0 for the others.", "state")
)

// New gives a collector of an application, before, while and after it runs.
func New(app App) prometheus.Collector {
	return collector{func(c collection) {
		status := app.Status()
		c.one(appState, status.State.String(), appStates)
		c.workers(status.Workers)
		c.stores(app.StoreStats())
		c.local(app.LocalOffsets())
		c.scan(app.Scan())
		c.abandoned()
	}}
}

// NewHost gives a collector of the embedded form's host.
func NewHost(host Host) prometheus.Collector {
	return collector{func(c collection) {
		if s := host.Status(); s.Name != "" { // before the first assignment there is none
			c.workers([]task.Status{s})
		}
		c.stores(host.StoreStats())
		c.local(host.Offsets())
		c.scan(host.Scan())
		c.abandoned()
	}}
}
