package report

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"
)

// Flags is the command line that the measured programs share.
type Flags struct {
	// Brokers is a list of host:port, split by commas.
	Brokers string
	// Client is "franz" or "confluent".
	Client string
	// In and Out are topics with the same number of partitions.
	In, Out string
	// Guarantee is "at-least-once" or "exactly-once".
	Guarantee string
	// CommitInterval is the time between two commits.
	CommitInterval time.Duration
	// Until ends the program when so many records are processed and committed; 0: never.
	Until int64
	// CPUProfile is the file to write a profile to, if not empty.
	CPUProfile string
}

// Register adds the flags to a set.
func (f *Flags) Register(s *flag.FlagSet) {
	s.StringVar(&f.Brokers, "brokers", "", "host:port of the brokers, split by commas")
	s.StringVar(&f.Client, "client", "franz", "franz or confluent")
	s.StringVar(&f.In, "in", "", "topic to count")
	s.StringVar(&f.Out, "out", "", "topic for the new count of each record's key")
	s.StringVar(&f.Guarantee, "guarantee", "at-least-once", "at-least-once or exactly-once")
	s.DurationVar(&f.CommitInterval, "commit-interval", 100*time.Millisecond, "time between two commits")
	s.Int64Var(&f.Until, "until", 0, "end when so many records are processed and committed (0: at SIGTERM)")
	s.StringVar(&f.CPUProfile, "cpuprofile", "", "write a CPU profile to this file")
}

// Validate reports every flag that cannot be.
func (f *Flags) Validate() error {
	var errs []error
	for _, need := range []struct{ name, value string }{{"brokers", f.Brokers}, {"in", f.In}, {"out", f.Out}} {
		if need.value == "" {
			errs = append(errs, fmt.Errorf("-%s is missing", need.name))
		}
	}
	if f.Client != "franz" && f.Client != "confluent" {
		errs = append(errs, fmt.Errorf("-client %q: franz or confluent", f.Client))
	}
	if f.Guarantee != "at-least-once" && f.Guarantee != "exactly-once" {
		errs = append(errs, fmt.Errorf("-guarantee %q: at-least-once or exactly-once", f.Guarantee))
	}
	if f.CommitInterval <= 0 {
		errs = append(errs, fmt.Errorf("-commit-interval %v: it must be more than 0", f.CommitInterval))
	}
	if f.Until < 0 {
		errs = append(errs, fmt.Errorf("-until %d: it must not be negative", f.Until))
	}
	return errors.Join(errs...)
}

// BrokerList is Brokers as a list.
func (f *Flags) BrokerList() []string { return strings.Split(f.Brokers, ",") }

// ExactlyOnce tells whether Guarantee is "exactly-once".
func (f *Flags) ExactlyOnce() bool { return f.Guarantee == "exactly-once" }
