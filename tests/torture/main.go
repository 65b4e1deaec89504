// Command torture gives one application every trouble at once and compares what is left with an
// oracle that shares nothing with it.
//
//	go run ./tests/torture --guarantee exactly-once --rounds 20 --seed 42
//	go run ./tests/torture --kafka --client confluent     # on an Apache Kafka of its own, which is killed too
//	go run ./tests/torture --kafka --timeouts             # on one that is left alone, but lets transactions time out
//	go run ./tests/torture --brokers 127.0.0.1:9092       # on one that runs already, and is left alone
//	go run ./tests/torture --history file                 # the steps of an earlier run again
//
// The application (ledger, repartition, tally: see topology.go) runs in processes that are killed
// with SIGKILL at random moments and at the steps of a commit, stopped with SIGSTOP for longer than
// the session and let go again, and started on disks that were lost or are of an older moment. Between
// them and the broker lies a proxy that breaks connections, loses and delays answers, answers with
// errors, and delivers requests late; a broker of the program's own is stopped and killed. Input
// arrives all the while.
//
// Owns: the history (steps.go), which depends on the seed alone; the oracle (oracle.go). Never: looks
// into the application while it runs but at what any client may see: topics and group offsets.
//
// It prints the seed and every step as it comes, which is the form that --history reads; the moments
// at which the operating system runs the processes are not repeated. Exit code 1: the oracle, or the
// application itself, found something wrong; the folder with logs and state is kept then.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

func main() {
	embeddedbroker.Main()
	appMain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}

// options of a run.
type options struct {
	guarantee, client string
	rounds            int
	seed              uint64
	minutes           float64
	brokers           []string // one that runs already
	kafka             bool     // an Apache Kafka of our own
	timeouts          bool     // one whose transactions time out soon, and that is left alone for it
	steps             []step   // instead of those of the seed
	dir               string
	rate              int
	single            bool // one store only
	unhurried         bool // one worker, and transactions that outlast a take-over on a busy machine
}

// patience bounds every wait for the application: take-overs, session and transaction timeouts, a
// broker's restart on a busy machine.
const patience = 2 * time.Minute

func command(ctx context.Context, args []string, out io.Writer) error {
	var o options
	var brokers, history string
	f := flag.NewFlagSet("torture", flag.ContinueOnError)
	f.StringVar(&o.guarantee, "guarantee", "exactly-once", "at-least-once or exactly-once")
	f.StringVar(&o.client, "client", "franz", "franz or confluent")
	f.IntVar(&o.rounds, "rounds", 0, "troubles to go through; 0: 20, or as many as --minutes allows")
	f.Float64Var(&o.minutes, "minutes", 0, "stop after the round in which so many minutes are over; 0: never")
	f.Uint64Var(&o.seed, "seed", 0, "of the history and of the input; 0: a new one")
	f.StringVar(&brokers, "brokers", "", "addresses of a broker that runs; default: an embedded one")
	f.BoolVar(&o.kafka, "kafka", false, "start an Apache Kafka with scripts/kafka (run from the module's root)")
	f.BoolVar(&o.timeouts, "timeouts", false, "with --kafka: let transactions time out after seconds; the broker is not stopped or killed then")
	f.StringVar(&history, "history", "", "file with the steps to go through instead of those of the seed")
	f.StringVar(&o.dir, "dir", "", "folder for logs and state; default: a temporary one")
	f.BoolVar(&o.single, "single", false, "an application with one store, instead of one with five of four kinds")
	f.IntVar(&o.rate, "rate", 1000, "input records a second")
	if err := f.Parse(args); err != nil {
		return err
	}
	if brokers != "" {
		o.brokers = strings.Split(brokers, ",")
	}
	if history != "" {
		file, err := os.Open(history)
		if err != nil {
			return err
		}
		o.steps, err = parseHistory(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return o.run(ctx, out)
}

func (o *options) run(ctx context.Context, out io.Writer) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	if o.rounds == 0 {
		o.rounds = 20
		if o.minutes > 0 {
			o.rounds = math.MaxInt
		}
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "torture-"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				err = os.RemoveAll(o.dir)
			}
		}()
	}
	fmt.Fprintf(out, "# torture --guarantee %s --client %s --seed %d, in %s\n", o.guarantee, o.client, o.seed, o.dir)
	w, err := newWorld(ctx, o, out)
	if err != nil {
		return err
	}
	err = w.run(ctx)
	if err != nil && w.broker.script && testbroker.LostMarkers(w.broker.dir) {
		err = fmt.Errorf("%w; the broker's log says that it left out a transaction's markers (\"likely deleted already\"), which hides or hangs what was committed, so that this run proves nothing", err)
	}
	if cerr := w.close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("%w (seed %d; logs and state in %s)", err, o.seed, o.dir)
	}
	fmt.Fprintf(out, "# %s\n#\n# For docs/torture.md:\n# %s\n", w.totals(), w.row())
	return nil
}

func (o *options) check() error {
	switch {
	case o.guarantee != "at-least-once" && o.guarantee != "exactly-once":
		return fmt.Errorf("--guarantee %s: use at-least-once or exactly-once", o.guarantee)
	case clients[o.client] == nil:
		return fmt.Errorf("--client %s: this build does not have it", o.client)
	case o.timeouts && !o.kafka:
		return errors.New("--timeouts is for --kafka: on the embedded broker transactions time out anyway")
	case len(o.brokers) > 0 && o.kafka:
		return errors.New("--brokers and --kafka exclude each other")
	}
	return nil
}
