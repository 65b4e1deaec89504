package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-streams/tidemark/internal/embeddedbroker"
)

var (
	killsFlag = flag.Int("crash.kills", 0, "kills of each random test; 0: a few")
	seedFlag  = flag.Uint64("crash.seed", 0, "seed of the random choices; 0: a new one")

	program    string   // the built word count
	buildFlags []string // those that the tests themselves were built with
)

func TestMain(m *testing.M) {
	embeddedbroker.Main() // the tests start brokers of their own to look into topics
	flag.Parse()
	if *seedFlag == 0 {
		*seedFlag = uint64(time.Now().UnixNano())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "crash-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "wordcount")
	build := exec.Command("go", slices.Concat([]string{"build"}, buildFlags, []string{"-o", program, "github.com/tidemark-streams/tidemark/examples/wordcount"})...)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build wordcount: %v\n%s", err, out)
		return 1
	}
	fmt.Fprintf(os.Stderr, "crash tests: -crash.seed %d\n", *seedFlag)
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// random gives the random numbers of a test, which depend on the seed and its name.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	t.Logf("-crash.seed %d", *seedFlag)
	var name uint64
	for _, b := range []byte(t.Name()) {
		name = name*31 + uint64(b)
	}
	return rand.New(rand.NewPCG(*seedFlag, name))
}
