package streams_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

// childEnv marks the child process of a test that leaves something behind by design.
const childEnv = "TIDEMARK_TEST_CHILD"

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for brokers, sessions and intervals most of the time.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("4"); err != nil {
			panic(err)
		}
	}
	if os.Getenv(childEnv) != "" {
		os.Exit(m.Run()) // what is left behind ends here
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

// inChild runs the test in a process of its own, because it leaves goroutines behind by
// design: a database that failed, a client that cannot be closed. It tells the child to go on
// and the parent, whose test is done, to return.
func inChild(t *testing.T) bool {
	t.Helper()
	if os.Getenv(childEnv) == t.Name() {
		return true
	}
	var pattern []string
	for _, part := range strings.Split(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", strings.Join(pattern, "/"), "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		if err == nil {
			t.Skipf("skipped in the child:\n%s", out)
		}
		t.Fatalf("child: %v\n%s", err, out)
	}
	return false
}
