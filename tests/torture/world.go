package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

// world is a run: the broker, the processes, what feeds and what looks.
type world struct {
	o      *options
	out    io.Writer
	names  names
	broker *broker
	cl     *kgo.Client // to the broker itself
	adm    *kadm.Client
	feeder *feeder
	watch  *watch
	procs  map[string]*process // the last run of each
	paused map[string]bool
	runs   int
	rounds int            // gone through
	done   map[string]int // steps by verb
	missed []string       // runs that did not come to their point
	began  time.Time
	result result
}

// The members' session is short, so that a zombie takes seconds to make.
const session = 2 * time.Second

// transactionTimeout is how long an open transaction of a process that is gone stays. A broker
// that is killed may leave one hanging that it aborts while its partitions have no leader (Apache
// Kafka 4.3.1), so where it is killed none may time out.
func (o *options) transactionTimeout() time.Duration {
	if o.kafka && !o.timeouts || o.unhurried {
		return time.Minute
	}
	return 3 * time.Second
}

func newWorld(ctx context.Context, o *options, out io.Writer) (w *world, err error) {
	w = &world{o: o, out: out, names: names{fmt.Sprintf("torture-%x", o.seed)}, procs: map[string]*process{}, paused: map[string]bool{}, done: map[string]int{}, began: time.Now()}
	if w.broker, err = openBroker(ctx, o); err != nil {
		return nil, err
	}
	made := w // a return of nil forgets w
	defer func() {
		if err != nil {
			err = errors.Join(err, made.close())
		}
	}()
	// The controller has made a topic before each broker has heard of it.
	if w.cl, err = kgo.NewClient(kgo.SeedBrokers(w.broker.addr), kgo.Dialer(w.broker.dial), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics(),
		kgo.UnknownTopicRetries(-1), kgo.AlwaysRetryEOF()); err != nil {
		return nil, err
	}
	w.adm = kadm.NewClient(w.cl)
	if err := w.createTopics(ctx, w.names.in(), w.names.ledgers(), w.names.tallies()); err != nil {
		return nil, err
	}
	w.feeder = startFeeder(ctx, w.cl, w.names.in(), o.seed, o.rate)
	w.watch = startWatch(ctx, w.adm, w.names.app)
	return w, nil
}

// run goes through the history, and checks what is left.
func (w *world) run(ctx context.Context) error {
	if w.o.steps != nil {
		if err := w.all(ctx, w.o.steps); err != nil {
			return err
		}
		return w.finish(ctx)
	}
	h := newWriter(w.o.seed, w.broker.proxy != nil, w.broker.script && !w.o.timeouts, int(session.Milliseconds()))
	h.fenced, h.timeouts = w.o.client == "franz", w.o.timeouts || w.broker.embedded != nil
	for n := 0; n < w.o.rounds && (w.o.minutes == 0 || time.Since(w.began).Minutes() < w.o.minutes); n++ {
		fmt.Fprintf(w.out, "# round %d, %v\n", n, time.Since(w.began).Round(time.Second))
		if err := w.all(ctx, h.round()); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		w.rounds = n + 1
	}
	return w.finish(ctx)
}

func (w *world) all(ctx context.Context, steps []step) error {
	for _, s := range steps {
		fmt.Fprintln(w.out, s)
		if err := w.do(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		w.done[s[0]]++
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.verdicts(); err != nil {
			return err
		}
	}
	return nil
}

// do does one step.
func (w *world) do(ctx context.Context, s step) error {
	switch s[0] {
	case "wait":
		return wait(ctx, s[1])
	case "net":
		return w.trouble(s[1:])
	case "broker":
		if s[1] == "stop" {
			defer w.hold(ctx)()
		}
		return w.broker.do(s[1])
	case "progress":
		return w.progress(ctx)
	case "fence":
		return w.fence(ctx, s[1])
	case "start":
		return w.start(s)
	case "lose", "keep", "old", "damage":
		return w.disk(s[0], s[1])
	}
	p := w.procs[s[1]]
	if p == nil {
		return errors.New("there is no such process")
	}
	switch s[0] {
	case "disk":
		return p.order(strings.Join(s[2:], " "))
	case "vanish":
		p.fails = syscall.ENOENT
		return w.vanish(s[1])
	case "fails":
		return p.await(patience)
	case "kill":
		w.paused[s[1]] = false
		return p.kill()
	case "term":
		p.stop()
	case "stop":
		p.stop()
		return p.await(patience)
	case "death":
		// The point may not come: nothing to restore, say. Then it is killed at a random moment. Where the steps are given it
		// must come, however long a busy machine takes.
		patience := 3 * time.Second
		if w.o.steps != nil {
			patience = 90 * time.Second
		}
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-p.ended:
		case <-timer.C:
			w.missed = append(w.missed, p.name+" "+p.point)
		}
		return p.kill()
	case "halted":
		return w.halted(ctx, s[1], p)
	case "expired":
		return w.expired(ctx, s[1])
	case "pause":
		w.paused[s[1]] = true
		p.signal(syscall.SIGSTOP)
	case "resume":
		w.paused[s[1]] = false
		p.signal(syscall.SIGCONT)
	}
	return nil
}

// hold pauses all processes, and waits until the broker has written the markers of what they committed; the
// function that it gives lets them go on. Apache Kafka 4.3 loses a commit while its only broker is shut down: the
// transaction coordinator takes partitions whose leader has just resigned for deleted ones, and completes the transaction
// without their markers (TransactionMarkerChannelManager). The task finds its store ahead of the group then, and says so.
func (w *world) hold(ctx context.Context) func() {
	var held []*process
	for name, p := range w.procs {
		if p.alive() && !w.paused[name] {
			p.signal(syscall.SIGSTOP)
			held = append(held, p)
		}
	}
	_ = wait(ctx, "1s")
	return func() {
		for _, p := range held {
			p.signal(syscall.SIGCONT)
		}
	}
}

func wait(ctx context.Context, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

func (w *world) start(s step) error {
	name := s[1]
	if p := w.procs[name]; p != nil && p.alive() {
		return errors.New("it runs")
	}
	commit, err := time.ParseDuration(s[2])
	if err != nil {
		return err
	}
	w.runs++
	order := appOrder{Name: fmt.Sprint(name, "-", w.runs), App: w.names.app, StateDir: filepath.Join(w.o.dir, name), Guarantee: w.o.guarantee, Client: w.o.client,
		Brokers: []string{w.broker.bootstrap()}, Commit: commit, Session: session, Transaction: w.o.transactionTimeout(), Start: patience, Workers: 2, Single: w.o.single}
	if w.o.unhurried {
		order.Workers = 1
	}
	point := ""
	if len(s) > 3 {
		point = s[3]
	}
	w.procs[name], err = startProcess(order, point, filepath.Join(w.o.dir, name+".log"))
	return err
}

// progress makes sure that what must work does, and waits until all input that is there now is
// committed, in both stages.
func (w *world) progress(ctx context.Context) error {
	ends, err := w.feeder.someEnds(ctx)
	if err != nil {
		return err
	}
	if err := w.await(ctx, ends); err != nil || w.o.single {
		return err
	}
	between, err := w.adm.ListEndOffsets(ctx, w.names.app+"-groups-repartition")
	if err != nil {
		return err
	}
	ends = map[kafka.TopicPartition]int64{}
	between.Each(func(o kadm.ListedOffset) {
		if o.Err == nil && o.Offset > 0 {
			ends[kafka.TopicPartition{Topic: o.Topic, Partition: o.Partition}] = o.Offset
		}
	})
	return w.await(ctx, ends)
}

// await waits until the group has committed up to the ends. A broker that needs longer for an answer than a
// member may be silent keeps none: as long as that is so, nobody can get on, and it waits longer.
func (w *world) await(ctx context.Context, ends map[kafka.TopicPartition]int64) error {
	for try := 1; ; try++ {
		err := w.awaitFor(ctx, patience, ends)
		slowest := w.watch.slowest()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || slowest < session || try == 5 {
			return err
		}
		fmt.Fprintf(w.out, "# %v; the broker took %v for an answer: wait longer\n", err, slowest.Round(100*time.Millisecond))
	}
}

// awaitFor waits for a while, and as long as no process ends by itself.
func (w *world) awaitFor(ctx context.Context, d time.Duration, ends map[kafka.TopicPartition]int64) error {
	for began := time.Now(); ; {
		actx, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := w.watch.await(actx, ends)
		cancel()
		if verr := w.verdicts(); verr != nil {
			return verr
		}
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || time.Since(began) > d {
			return err
		}
	}
}

// verdicts tells whether the processes that have ended did so rightly.
func (w *world) verdicts() error {
	for _, p := range w.procs {
		if !p.alive() {
			if err := p.verdict(); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish lets the application process everything in one process, stops it, and checks.
func (w *world) finish(ctx context.Context) error {
	if p := w.broker.proxy; p != nil {
		p.heal()
		w.missed = append(w.missed, p.unmet...)
	}
	if p := w.procs["p1"]; p == nil || !p.alive() {
		if err := w.all(ctx, []step{{"start", "p1", "20ms"}}); err != nil {
			return err
		}
	}
	if err := w.all(ctx, []step{{"progress"}}); err != nil {
		return err
	}
	w.feeder.stop()
	if err := w.all(ctx, []step{{"progress"}, {"stop", "p1"}}); err != nil {
		return err
	}
	w.watch.stop()
	var err error
	w.result, err = w.check(ctx)
	return errors.Join(err, w.watch.err)
}

// close ends everything that still runs.
func (w *world) close() (err error) {
	for _, p := range w.procs {
		_ = p.kill() // how it ended was looked at before
	}
	if w.feeder != nil && len(w.o.brokers) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		w.feeder.stop()
		err = w.deleteTopics(ctx)
	}
	if w.cl != nil {
		w.cl.Close() // first: it ends what the feeder is writing
	}
	if w.feeder != nil {
		w.feeder.stop()
		w.watch.stop()
	}
	return errors.Join(err, w.broker.close())
}

func (w *world) totals() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v in %v: ", w.result, time.Since(w.began).Round(time.Second))
	for _, v := range []string{"start", "kill", "death", "stop", "pause", "expired", "lose", "old", "damage", "disk", "fails", "net", "broker", "progress"} {
		fmt.Fprintf(&b, "%d %s, ", w.done[v], v)
	}
	if len(w.missed) > 0 {
		fmt.Fprintf(&b, "%d points missed: %v", len(w.missed), w.missed)
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// row is the run as a row of the table in docs/torture.md.
func (w *world) row() string {
	broker := "embedded"
	if w.o.kafka || len(w.o.brokers) > 0 {
		broker = "Apache Kafka"
	}
	n := func(verbs ...string) string {
		var counts []string
		for _, v := range verbs {
			counts = append(counts, strconv.Itoa(w.done[v]))
		}
		return strings.Join(counts, ", ")
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %v, %d | %d | %s | %s | %s |", broker, w.o.client, w.o.guarantee, w.o.seed, time.Since(w.began).Round(time.Second), w.rounds,
		w.result.inputs, n("kill", "death", "pause", "stop"), n("lose", "old", "damage", "fails"), n("net", "fence", "broker"))
}
