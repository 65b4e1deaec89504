package streams_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/migration"
	"github.com/tidemark-streams/tidemark/streams"
)

// legacyKillEnv tells the child of TestTakeOverIsKilled its world: brokers, application, topics and state directory.
const legacyKillEnv = "TIDEMARK_TEST_LEGACY"

// An App that is killed while it takes over what another program left, at its start, or while it removes the originals,
// when it closes, goes on the next time: nothing is restored, and nothing counts twice.
func TestTakeOverIsKilled(t *testing.T) {
	config := func(e *env) streams.Config {
		cfg := e.config()
		cfg.Migration = migration.Options{CleanShutdown: true}
		return cfg
	}
	if world := os.Getenv(legacyKillEnv); world != "" {
		w := strings.Split(world, "\n")
		e := &env{t: t, b: testbroker.Broker{Addrs: strings.Split(w[0], ",")}, client: franz.Client{}, app: w[1], in: w[2], out: w[3], dir: w[4]}
		app := e.start(e.wordCount(), config(e))
		app.catchUp()
		app.close()
		t.Fatal("the application came to its end before the fail point")
	}
	e := newEnv(t, testbroker.Kfake(t), franz.Client{})
	in, once := lines(100)
	want := map[string]int64{}
	give := func() {
		e.produce(in...)
		for w, n := range once {
			want[w] += n
		}
	}
	give()
	app := e.start(e.wordCount(), e.config())
	app.catchUp()
	app.close()
	// Of two tasks that move at once one may be through when the other dies: what comes last is waited for once.
	rounds := [][]string{
		{"migration-loaded", "migration-recorded", "migration-data-renamed", "migration-file-renamed"},
		{"migration-sweeping:2", "migration-swept"},
	}
	for _, points := range rounds {
		dirs := []string{filepath.Join(e.dir, e.app, "1_0"), filepath.Join(e.dir, e.app, "1_1")}
		for _, dir := range dirs {
			asLegacy(t, dir)
		}
		give()
		for _, point := range points {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestTakeOverIsKilled$", "-test.v")
			cmd.Env = append(os.Environ(), childEnv+"=legacy", failpoint.Env+"="+point,
				legacyKillEnv+"="+strings.Join([]string{strings.Join(e.b.Addrs, ","), e.app, e.in, e.out, e.dir}, "\n"))
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("child at %s: %v\n%s", point, err, out)
			}
		}
		app := e.start(e.wordCount(), config(e))
		app.catchUp()
		for _, w := range app.Status().Workers {
			for _, task := range w.Tasks {
				for _, r := range task.Restore {
					if r.From == 0 {
						t.Errorf("after kills at %s, task %v is restored from the start: %+v", points, task.ID, r)
					}
				}
			}
		}
		app.close()
		if got, _ := e.counts(e.out); cmp.Diff(want, got) != "" {
			t.Errorf("after kills at %s: counts: -want +got\n%s", points, cmp.Diff(want, got))
		}
		for _, dir := range dirs {
			if left, err := filepath.Glob(filepath.Join(dir, "*.migrated")); err != nil || len(left) > 0 {
				t.Errorf("left: %q, %v", left, err)
			}
		}
	}
}
