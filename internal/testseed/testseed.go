package testseed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Variable is the environment variable that holds the seed to use, a decimal number.
const Variable = "TIDEMARK_TEST_SEED"

// New returns a generator with a random seed, or with the one in [Variable], and logs
// how to repeat the test with it: go test shows the line when the test fails.
func New(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(Variable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%q is not a seed: %v", Variable, text, err)
		}
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	t.Logf("seed %d: repeat with %s=%d go test -count=1 -run '^%s$'", seed, Variable, seed, test)
	return rand.New(rand.NewPCG(seed, 0))
}
