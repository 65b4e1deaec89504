package testseed

import (
	"fmt"
	"strings"
	"testing"
)

// recorder keeps what a test would have logged.
type recorder struct {
	testing.TB
	lines []string
}

func (r *recorder) Logf(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func TestLoggedSeedRepeats(t *testing.T) {
	t.Setenv(Variable, "")
	first := &recorder{TB: t}
	want := New(first).Uint64()
	if other := New(first).Uint64(); other == want {
		t.Errorf("two random seeds give the same number %d", want)
	}

	seed, _, _ := strings.Cut(strings.TrimPrefix(first.lines[0], "seed "), ":")
	t.Setenv(Variable, seed)
	second := &recorder{TB: t}
	if got := New(second).Uint64(); got != want {
		t.Errorf("with seed %s: %d, want %d", seed, got, want)
	}
	if !strings.Contains(second.lines[0], Variable+"="+seed+" go test -count=1 -run '^TestLoggedSeedRepeats$'") {
		t.Errorf("the line is %q", second.lines[0])
	}
}
