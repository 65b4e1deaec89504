package streams_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/failpoint"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/streams"
)

// replayEnv tells the child of TestReplayIsKilled its world: brokers, application, topics and state
// directory.
const replayEnv = "TIDEMARK_TEST_REPLAY"

// A replay that is killed goes on where its last batch was: no record counts twice, none is missing, and nothing is
// sent again.
func TestReplayIsKilled(t *testing.T) {
	if world := os.Getenv(replayEnv); world != "" {
		w := strings.Split(world, "\n")
		e := &env{t: t, b: testbroker.Broker{Addrs: strings.Split(w[0], ",")}, client: franz.Client{}, app: w[1], in: w[2], out: w[3], dir: w[4]}
		e.run(e.countingIn(localCounts, loggedCounts), small)
		t.Fatal("the application came to its end before the fail point")
	}
	e := newEnv(t, testbroker.Kfake(t), franz.Client{})
	topology := func() *streams.Topology { return e.countingIn(localCounts, loggedCounts) }
	want := []string{}
	give := func(n int) {
		e.give(n)
		for range n {
			want = append(want, fmt.Sprintf("%d/%[1]d", len(want)+1))
		}
	}
	give(10)
	e.run(topology(), small)
	rounds := [][]string{{"replay-batch:3", "replay-batch:4"}, {"replayed:1", "replay-batch:1"}, {"start-committed", "start-committed"}, {"transaction-committed:4"}}
	if testing.Short() {
		rounds = rounds[:2]
	}
	for _, points := range rounds {
		for _, lost := range []bool{false, true} {
			back := e.keepState()
			give(10)
			e.run(topology(), small)
			if back(); lost {
				e.loseState()
			}
			give(1)
			for _, point := range points {
				e.dieAt(point)
			}
			if n := e.run(topology(), small); n == 0 && points[0] != "replayed:1" {
				t.Errorf("nothing was left to replay after %s", points)
			}
			e.outputs(want...)
			if t.Failed() {
				t.Fatalf("after %s, lost: %v", points, lost)
			}
		}
	}
}

// small has every record reach the bound of a commit.
func small(c *streams.Config) { c.Limits.MaxDirtyBytes = 1 }

// dieAt runs the application in a child process until it is killed at a fail point.
func (e *env) dieAt(point string) {
	e.t.Helper()
	cmd := exec.CommandContext(e.t.Context(), os.Args[0], "-test.run", "^TestReplayIsKilled$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"=replay", failpoint.Env+"="+point,
		replayEnv+"="+strings.Join([]string{strings.Join(e.b.Addrs, ","), e.app, e.in, e.out, e.dir}, "\n"))
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(err.Error(), "killed") {
		e.t.Fatalf("child at %s: %v\n%s", point, err, out)
	}
}
