package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/internal/testseed"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/task"
)

// childEnv holds what a child process of the torture needs: door, guarantee, brokers, app, in, out, folder,
// the partitions that are assigned by hand, and whether its outputs are written by a producer of its own.
const childEnv = "TIDEMARK_EMBEDDED_CHILD"

// child is the program that is killed: a user's loop. It ends when its standard input does.
func child(args []string) error {
	name, guarantee, brokers, app, in, out, dir := args[0], args[1], args[2], args[3], args[4], args[5], args[6]
	clientID = strconv.Itoa(os.Getpid())
	cfg := embedded.Config{App: app, StateDir: dir, Stores: []processor.StoreDef{counts}, Outputs: []string{out}, TransactionTimeout: 2 * time.Second,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	cfg.Limits.CommitInterval = 20 * time.Millisecond
	if guarantee == embedded.ExactlyOnce.String() {
		cfg.Guarantee = embedded.ExactlyOnce
	}
	f := func(t *embedded.Task, r record) error { return count(t, r.key, out) }
	if args[8] == ownProducer {
		own, err := openOwn(name, brokers)
		if err != nil {
			return err
		}
		defer own.close()
		f = func(t *embedded.Task, r record) error { return countWith(own, t, r.key, out) }
	}
	for _, d := range append(doors, doorsByHand(args[7])...) {
		if d.name != name {
			continue
		}
		l, err := d.open([]string{brokers}, app+"-group", []string{in}, cfg)
		if err != nil {
			return err
		}
		ended := make(chan struct{})
		go func() { // ends with the process
			_, _ = io.Copy(io.Discard, os.Stdin)
			close(ended)
		}()
		for told := time.Now(); l.Err() == nil; {
			if now := time.Now(); now.Sub(told) > 3*time.Second { // for who reads the log of a failure
				told = now
				fmt.Fprintln(os.Stderr, now.Format(time.TimeOnly), "ready", l.Ready())
			}
			select {
			case <-ended:
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				return failure(l.Close(ctx))
			default:
			}
			if err := l.poll(f); err != nil {
				return err
			}
		}
		return l.Err()
	}
	return fmt.Errorf("no door %s", name)
}

// failure gives what an error of Close says beside that the last commit did not succeed: a process may be ended in the middle of
// a rebalance.
func failure(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && fmt.Sprintf("%T", err) == "*errors.joinError" {
		var left []error
		for _, e := range joined.Unwrap() {
			left = append(left, failure(e))
		}
		return errors.Join(left...)
	}
	if errors.Is(err, embedded.ErrNotCommitted) && !errors.Is(err, task.ErrForeignCommit) {
		return nil
	}
	return err
}

// doorsByHand are doors that assign partitions, with their numbers as text, instead of a subscription.
func doorsByHand(numbers string) (byHand []door) {
	for _, d := range handDoors {
		byHand = append(byHand, door{d.name + "-by-hand", func(brokers []string, group string, topics []string, cfg embedded.Config) (loop, error) {
			l, err := d.open(brokers, group, cfg)
			if err != nil {
				return nil, err
			}
			var list []int32
			for n := range strings.FieldsSeq(numbers) {
				i, err := strconv.ParseInt(n, 10, 32)
				if err != nil {
					return nil, err
				}
				list = append(list, int32(i))
			}
			return l, l.assign(context.Background(), topics[0], list...)
		}})
	}
	return byHand
}

// process is a child that runs.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   string
}

func (w *world) spawn(args ...string) *process {
	w.t.Helper()
	started := time.Now()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(args, "\n"))
	p := &process{cmd: cmd, log: filepath.Join(w.t.TempDir(), "log")}
	w.t.Cleanup(func() {
		if w.t.Failed() {
			text, _ := os.ReadFile(p.log)
			w.t.Logf("process %d, started %s: %s", cmd.Process.Pid, started.Format(time.TimeOnly), text[:min(len(text), 8000)])
		}
	})
	log, err := os.Create(p.log)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// end ends the process as a deployment does. One that has failed by itself is a failure of the test.
func (w *world) end(p *process) {
	_ = p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		text, _ := os.ReadFile(p.log)
		w.t.Errorf("a process ended with %v: %s", err, text)
	}
}

// ordeal is what is done to the processes of a torture.
type ordeal struct {
	door   door
	g      embedded.Guarantee
	rounds int
	bury   bool // see bury
	own    bool // their outputs are written by a producer of their own
}

// Three processes share the partitions while each is killed, or ended, and started again, some with an empty
// disk. Every record is counted once. TIDEMARK_EMBEDDED_ROUNDS sets how often (default 8), half of it under each guarantee.
func TestTorture(t *testing.T) {
	t.Parallel()
	r := testseed.New(t)
	rounds := 8
	if n, err := strconv.Atoi(os.Getenv("TIDEMARK_EMBEDDED_ROUNDS")); err == nil {
		rounds = n
	}
	classic := slices.DeleteFunc(slices.Clone(doors), func(d door) bool { return d.name == consumerProtocol }) // see bury
	underBoth(t, r, func(t *testing.T, r *rand.Rand, g embedded.Guarantee) {
		o := ordeal{door: classic[r.IntN(len(classic))], g: g, rounds: (rounds + 1) / 2, bury: true}
		newWorld(t, o.door).torture(r, o)
	})
}

// underBoth runs a test under both guarantees, each with a source of chance of its own.
func underBoth(t *testing.T, r *rand.Rand, test func(*testing.T, *rand.Rand, embedded.Guarantee)) {
	for _, g := range guarantees {
		seed := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			test(t, seed, g)
		})
	}
}

// The same on Apache Kafka, which drops dead members itself: with an assignor of the client's, with that of the broker, and with
// partitions that each process is assigned by hand.
func TestTortureOnKafka(t *testing.T) {
	t.Parallel()
	b, r := real(t), testseed.New(t)
	byHand := doorsByHand("")
	for _, d := range []door{doors[r.IntN(len(doors)-1)], doors[len(doors)-1], byHand[r.IntN(len(byHand))]} {
		t.Run(d.name, func(t *testing.T) {
			underBoth(t, r, func(t *testing.T, r *rand.Rand, g embedded.Guarantee) {
				newWorldOn(t, b, d).torture(r, ordeal{door: d, g: g, rounds: 4})
			})
		})
	}
}

func (w *world) torture(r *rand.Rand, o ordeal) {
	t, outputs := w.t, ""
	if o.own = o.own || o.g == embedded.AtLeastOnce && r.IntN(2) == 0; o.own {
		outputs = ownProducer
	}
	t.Logf("%s, %v, %d rounds, its own producer: %v", o.door.name, o.g, o.rounds, o.own)
	x := w.watch()
	stop := w.feed()
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	start := func(i int) *process {
		return w.spawn(o.door.name, o.g.String(), w.b.Addrs[0], w.app, w.in, w.out, dirs[i], []string{"0 1", "2", "3"}[i], outputs)
	}
	running := []*process{start(0), start(1), start(2)}
	defer func() {
		for _, p := range running {
			if p.cmd.ProcessState == nil {
				p.kill()
			}
		}
	}()
	for range o.rounds {
		w.step(r, running, dirs, start)
	}
	stop()
	buried := time.Now()
	eventually(t, 90*time.Second, "all records are counted", func() bool {
		if now := time.Now(); o.bury && now.Sub(buried) > 8*time.Second {
			buried = now
			w.bury(running)
		}
		return x.reached(w.seq)
	})
	for _, p := range running {
		w.end(p)
	}
	if o.own {
		o.g = embedded.AtLeastOnce // what such a producer writes is not in the transaction
	}
	x.check(t, w.seq, o.g)
	t.Logf("%d records", w.seq)
}

// step hits one of the processes after a while.
func (w *world) step(r *rand.Rand, running []*process, dirs []string, start func(int) *process) {
	timer := time.NewTimer(time.Duration(100+r.IntN(1500)) * time.Millisecond)
	<-timer.C
	i := r.IntN(3)
	switch r.IntN(5) {
	case 0:
		w.end(running[i])
	case 1:
		running[i].kill()
		dirs[i] = w.t.TempDir() // a disk that is lost
	default:
		running[i].kill()
	}
	running[i] = start(i)
}

// bury takes members out of the group whose process is dead. The embedded broker keeps one for ever that was
// killed while it waited for the answer to its join; Kafka drops it when its session is over.
func (w *world) bury(running []*process) {
	alive := map[string]bool{}
	for _, p := range running {
		alive[strconv.Itoa(p.cmd.Process.Pid)] = true
	}
	if n := w.evict(alive); n > 0 {
		w.t.Logf("%d dead processes were still members", n)
	}
}
