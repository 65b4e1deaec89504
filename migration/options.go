package migration

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tidemark-streams/tidemark/statestore"
)

// Guarantee is the processing guarantee of the application that wrote the files.
type Guarantee string

// The guarantees.
const (
	// ExactlyOnce is the stricter reading, and the zero value's: after a crash the data may
	// hold what an aborted transaction wrote, and the offset in the file does not show it.
	ExactlyOnce Guarantee = "exactly-once"
	// AtLeastOnce: data that is ahead of the offset is written again by the changelog.
	AtLeastOnce Guarantee = "at-least-once"
)

// Options is how legacy files are to be read. The zero value is the careful reading.
type Options struct {
	// App is the application id. "" = the only application in the directory.
	App string
	// Guarantee is what the application ran with; "" = [ExactlyOnce].
	Guarantee Guarantee
	// CleanShutdown: whoever calls knows that the application was closed cleanly, so that
	// the offsets of an exactly-once application are believed without another proof.
	CleanShutdown bool
	// Map names the stores whose changelog a topic is, where its name does not tell: a
	// source topic used as changelog, the topic of a global store. Topics whose name is
	// <app>-<store>-changelog need none.
	Map map[string][]string
	// Specs says what stores are, by name, where it is known: their kind, serdes and
	// changelog. Others are taken as key-value stores. Only data of key-value stores, plain and
	// timestamped, can be moved. The value of a timestamped store is
	// expected as Kafka Streams keeps it: 8 bytes of timestamp, big-endian, before the value.
	Specs map[string]statestore.Spec
	// Own names stores that a program keeps itself and that cannot keep offsets: their data
	// stays where it is, and their entry of the task's .checkpoint goes into a file of their own,
	// .checkpoint_<store>.
	Own []string
	// Sources opens the data of stores, by name, that this package cannot read itself.
	Sources map[string]OpenSource
	// Keep leaves what was renamed to *.migrated for ever; [Sweep] then does nothing.
	Keep bool
	// Held: the caller holds the lock of the application's directory, and gives that directory.
	Held bool
	// Resources is what task stores of the process share; nil = small ones for each.
	Resources *statestore.Resources
	// Logger takes what a person should know; nil = slog.Default().
	Logger *slog.Logger
	// OnProgress, if not nil, is called from several goroutines while data moves.
	OnProgress func(Progress)
	// Jobs is how many task directories are worked on at a time. 0 = 4 per core to look, and
	// one per core to move data.
	Jobs int
}

// OpenSource opens the data of one store: dir is its folder, or that of its task when it has none.
type OpenSource func(dir string) (Source, error)

// Source is the data of a store of another program.
type Source interface {
	// Rows gives all entries, each key once, in any order. The slices are valid until the
	// loop's next turn. An error ends the loop, as the second value of the last turn.
	Rows() iter.Seq2[statestore.Row, error]
	// Close gives up what Rows needs.
	Close() error
}

// Progress tells how far the data of a store has been moved.
type Progress struct {
	Task, Store string
	// Records and Bytes (of keys and values) that were moved.
	Records, Bytes int64
	// FileBytes is the size of the files that they come from, 0 if it is not known.
	FileBytes int64
	// Done: all records were moved.
	Done bool
}

// Validate reports every problem at once.
func (o Options) Validate() error {
	var errs []error
	switch o.Guarantee {
	case "", ExactlyOnce, AtLeastOnce:
	default:
		errs = append(errs, fmt.Errorf("guarantee %q is neither %s nor %s", o.Guarantee, AtLeastOnce, ExactlyOnce))
	}
	if o.App == "." || o.App == ".." || strings.ContainsAny(o.App, "/\x00"+string(filepath.Separator)) {
		errs = append(errs, fmt.Errorf("app id %q cannot be the name of a directory", o.App))
	}
	if o.Jobs < 0 {
		errs = append(errs, fmt.Errorf("%d jobs", o.Jobs))
	}
	for topic, stores := range o.Map {
		if topic == "" || len(stores) == 0 {
			errs = append(errs, fmt.Errorf("the map of topic %q names no store", topic))
		}
		for _, store := range stores {
			if store == "" {
				errs = append(errs, fmt.Errorf("the map of topic %q names a store without a name", topic))
			}
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("migration options: %w", errors.Join(errs...))
	}
	return nil
}

// takes tells whether data can be moved into the store: windows, sessions and versions have a
// layout of their own, and what is in memory is gone at the next open.
func (o Options) takes(store string) bool {
	p := o.Specs[store]
	return !p.InMemory && (p.Kind == 0 || p.Kind == statestore.KindKeyValue || p.Kind == statestore.KindTimestampedKeyValue)
}

func (o Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.Default()
	}
	return o.Logger
}

func (o Options) progress(p Progress) {
	if o.OnProgress != nil {
		o.OnProgress(p)
	}
}

func (o Options) jobs(most int) int {
	n := o.Jobs
	if n == 0 {
		n = 4 * runtime.GOMAXPROCS(0)
	}
	return max(1, min(n, most))
}

func (o Options) moveJobs(most int) int {
	if o.Jobs == 0 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	return o.jobs(most)
}
