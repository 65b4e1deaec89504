package streams_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/streams"
)

// placing is a client whose membership has no place while away.
type placing struct {
	kafka.Client
	away *atomic.Bool
	mu   sync.Mutex
	told []func() // those that hear of a change
}

func (c *placing) NewMembership(s kafka.Settings, cfg kafka.MembershipConfig) (kafka.Membership, error) {
	c.mu.Lock()
	c.told = append(c.told, cfg.Changed)
	c.mu.Unlock()
	m, err := c.Client.NewMembership(s, cfg)
	return placed{m, c}, err
}

type placed struct {
	kafka.Membership
	c *placing
}

func (m placed) State() kafka.MembershipState {
	s := m.Membership.State()
	if m.c.away.Load() {
		s.Holds = nil
	}
	return s
}

func (c *placing) setAway(away bool) {
	c.away.Store(away)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, changed := range c.told {
		changed()
	}
}

// witness makes a directory of a task that does not exist, last owned at a time. The cleaner removes it, and has then
// looked at all directories at least once after the delay from that time.
func (e *env) witness(last time.Time) (gone func() bool) {
	e.t.Helper()
	dir := filepath.Join(e.state(), "9_0")
	s, err := statestore.Open(dir, statestore.Options{Logger: discard})
	must(e.t, err)
	must(e.t, s.StampOwner(statestore.Owner{ProcessID: "p", Last: last}))
	must(e.t, s.Close())
	return func() bool {
		_, err := os.Lstat(dir)
		return os.IsNotExist(err)
	}
}

// taskDirs are those of the word count.
func (e *env) taskDirs() []string {
	e.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(e.state(), "[01]_[01]"))
	must(e.t, err)
	return dirs
}

// A task that was owned for longer than the delay, without a write in all that time, is released: the cleaner of this
// process, which goes on, keeps its directory for one delay after that, and then removes it.
func TestReleasedTaskIsKeptForTheDelay(t *testing.T) {
	t.Parallel()
	const delay = time.Second
	e := newEnv(t, testbroker.Kfake(t), franz.Client{})
	client := &placing{Client: e.client, away: &atomic.Bool{}}
	cfg := e.config()
	cfg.Client, cfg.CleanupDelay = client, delay
	app := e.start(e.wordCount(), cfg)
	in, want := lines(50)
	e.produce(in...)
	app.catchUp()
	kafkatest.Eventually(t, 90*time.Second, "the tasks were idle for longer than the delay", e.witness(time.Now()))
	if n := len(e.taskDirs()); n != 4 {
		t.Fatalf("%d task directories of running tasks", n)
	}

	wait(delay / 2)                               // the cleaner looked just now, and will soon again
	lost := time.Now().Truncate(time.Millisecond) // as the store keeps it; the release is later
	client.setAway(true)
	kafkatest.Eventually(t, 90*time.Second, "the first directory is removed", func() bool { return len(e.taskDirs()) < 4 })
	if kept := time.Since(lost); kept < delay {
		t.Errorf("a directory was removed %v after its release; it is kept for %v", kept, delay)
	}
	kafkatest.Eventually(t, 90*time.Second, "all are removed", func() bool { return len(e.taskDirs()) == 0 })

	client.setAway(false) // the tasks come back, and are restored
	e.produce(in...)
	app.catchUp()
	app.close()
	for w := range want {
		want[w] *= 2
	}
	if got, _ := e.counts(e.out); !cmp.Equal(want, got) {
		t.Errorf("counts: -want +got\n%s", cmp.Diff(want, got))
	}
}

// ownedEnv tells the child of TestKilledOwnerKeepsItsState its world: brokers, application, topics, state directory
// and delay.
const ownedEnv = "TIDEMARK_TEST_OWNED"

// A process that had its tasks for longer than the delay, without a write in all that time, is killed. The next start
// finds directories that say nothing of the last time, and removes none of them before its own delay is over: a task that
// has its place back by then has its state.
func TestKilledOwnerKeepsItsState(t *testing.T) {
	if world := os.Getenv(ownedEnv); world != "" {
		ownUntilKilled(t, strings.Split(world, "\n"))
	}
	t.Parallel()
	b := testbroker.Kfake(t)
	t.Run("its place is not there", func(t *testing.T) {
		t.Parallel()
		const delay = time.Second
		e := newEnv(t, b, franz.Client{})
		e.ownedAndKilled(delay)
		cfg := e.config()
		cfg.Client, cfg.CleanupDelay = &placing{Client: e.client, away: &atomic.Bool{}}, delay
		cfg.Client.(*placing).away.Store(true)
		begun := time.Now()
		app := e.start(e.wordCount(), cfg)
		kafkatest.Eventually(t, 90*time.Second, "the first directory is removed", func() bool { return len(e.taskDirs()) < 4 })
		if kept := time.Since(begun); kept < delay {
			t.Errorf("a directory was removed %v after the start; it is kept for %v", kept, delay)
		}
		app.close()
	})
	t.Run("its place is there", func(t *testing.T) {
		t.Parallel()
		// On a machine that needs longer for the take-over than the delay, the cleaner is right to remove what it finds.
		for delay := 2 * time.Second; !isBackWithin(t, b, delay); delay *= 2 {
			if delay > 10*time.Second {
				t.Skipf("the tasks are not taken over within %v", delay)
			}
		}
	})
}

// isBackWithin tells whether the tasks of a process that was killed were taken over again within the delay. If so,
// their state was there.
func isBackWithin(t *testing.T, b testbroker.Broker, delay time.Duration) bool {
	t.Helper()
	e := newEnv(t, b, franz.Client{})
	want := e.ownedAndKilled(delay)
	cleaned := e.witness(time.Now().Add(-time.Hour))
	cfg := e.config()
	cfg.CleanupDelay = delay
	begun := time.Now()
	app := e.start(e.wordCount(), cfg)
	app.catchUp()
	took := time.Since(begun)
	if took < delay {
		if restored := app.restoredStores(); len(restored) > 0 {
			t.Errorf("restored after a kill: %v", restored)
		}
		kafkatest.Eventually(t, 90*time.Second, "the cleaner has looked", cleaned)
		if n := len(e.taskDirs()); n != 4 {
			t.Errorf("%d task directories are left", n)
		}
	}
	app.close()
	if got, _ := e.counts(e.out); !cmp.Equal(want, got) {
		t.Errorf("counts: -want +got\n%s", cmp.Diff(want, got))
	}
	return took < delay
}

// ownedAndKilled has a child process count, own the tasks idly for longer than the delay, and kill itself.
func (e *env) ownedAndKilled(delay time.Duration) (want map[string]int64) {
	e.t.Helper()
	in, want := lines(50)
	e.produce(in...)
	cmd := exec.CommandContext(e.t.Context(), os.Args[0], "-test.run", "^TestKilledOwnerKeepsItsState$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"=owned", ownedEnv+"="+strings.Join([]string{strings.Join(e.b.Addrs, ","), e.app, e.in, e.out, e.dir, delay.String()}, "\n"))
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
		e.t.Fatalf("child: %v\n%s", err, out)
	}
	if n := len(e.taskDirs()); n != 4 {
		e.t.Fatalf("%d task directories are left by the child", n)
	}
	for _, dir := range e.taskDirs() {
		v, err := statestore.OpenReadOnly(dir, statestore.ReadOptions{Logger: discard})
		must(e.t, err)
		m := v.Metadata()
		must(e.t, v.Close())
		if !m.Owner.Last.IsZero() && time.Since(m.Owner.Last) < delay || time.Since(m.Committed) < delay {
			e.t.Fatalf("%s was written to within the delay of %v: %+v", dir, delay, m)
		}
	}
	return want
}

func ownUntilKilled(t *testing.T, world []string) {
	e := &env{t: t, b: testbroker.Broker{Addrs: strings.Split(world[0], ",")}, client: franz.Client{}, app: world[1], in: world[2], out: world[3], dir: world[4]}
	delay, err := time.ParseDuration(world[5])
	must(t, err)
	cfg := e.config()
	cfg.CleanupDelay = delay
	app := e.start(e.wordCount(), cfg)
	app.catchUp()
	kafkatest.Eventually(t, time.Minute, "the tasks were idle for longer than the delay", e.witness(time.Now()))
	if s := app.State(); s != streams.Running {
		t.Fatal(fmt.Sprint("the application is ", s))
	}
	failpoint.Arm("owned")
	failpoint.Hit("owned")
}
