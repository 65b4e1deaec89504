package broker

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

// patience bounds every wait: a broker on a busy machine takes its time to come back.
const patience = 3 * time.Minute

const script = "../../scripts/kafka"

// askedFor: real brokers are wanted without a variable that says so.
var askedFor = false

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for brokers most of the time.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("6"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if code == 0 {
		if err := testbroker.Leaks(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// node is a real one-node cluster that belongs to a test.
type node struct {
	t       *testing.T
	dir     string
	addr    string
	options []string
}

// start starts a broker with settings of the form KEY=VALUE, and kills it when the test ends.
func start(t *testing.T, settings ...string) *node {
	t.Helper()
	needReal(t)
	n := &node{t: t, dir: t.TempDir()}
	for _, s := range settings {
		n.options = append(n.options, "-o", s)
	}
	n.addr = n.script(append([]string{"start", n.dir}, n.options...)...)
	t.Cleanup(func() { _ = exec.Command(script, "kill", n.dir).Run() }) // it may be down already
	return n
}

// needReal skips the test where no real broker can be started, unless it must.
func needReal(t *testing.T) {
	t.Helper()
	must := os.Getenv("TIDEMARK_REQUIRE_REAL") != ""
	if !askedFor && !must && !testbroker.HasReal() {
		t.Skip("built without cgo, and no real broker is asked for: TIDEMARK_TEST_BROKERS is empty")
	}
	out, err := exec.Command(script, "check").CombinedOutput()
	switch {
	case err == nil:
	case must:
		t.Fatalf("TIDEMARK_REQUIRE_REAL is set, but: %s", out)
	default:
		t.Skipf("%s", out)
	}
}

// script runs scripts/kafka and gives what it prints.
func (n *node) script(args ...string) string {
	n.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(script, args...)
	cmd.Env = append(os.Environ(), "TIDEMARK_KAFKA_HEAP=512m", "TIDEMARK_KAFKA_QUICK=1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		n.t.Fatalf("scripts/kafka %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(stdout.String())
}

// stop ends the broker cleanly, kill does not; its data stays.
func (n *node) stop() { n.t.Helper(); n.script("stop", n.dir) }
func (n *node) kill() { n.t.Helper(); n.script("kill", n.dir) }

// again starts the broker at the address it had.
func (n *node) again() {
	n.t.Helper()
	_, port, err := net.SplitHostPort(n.addr)
	if err != nil {
		n.t.Fatal(err)
	}
	if addr := n.script(append([]string{"start", n.dir, "-p", port}, n.options...)...); addr != n.addr {
		n.t.Fatalf("the broker came back at %s, not at %s", addr, n.addr)
	}
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// until waits until missing gives an empty text.
func until(t *testing.T, what string, missing func() string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		text := missing()
		if text == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v it is not so that %s: %s", patience, what, text)
		}
	}
}
