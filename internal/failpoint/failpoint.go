package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// Env names the environment variable that arms a point: "name" or "name:n" for the n-th time. "name:n:stop" stops the
// process there, as SIGSTOP does, until somebody lets it go on.
const Env = "TIDEMARK_FAILPOINT"

type point struct {
	name string
	stop bool
	left atomic.Int64
}

var armed atomic.Pointer[point]

func init() {
	if v := os.Getenv(Env); v != "" {
		Arm(v)
	}
}

// Arm arms the point that spec names, as in [Env].
func Arm(spec string) {
	name, rest, _ := strings.Cut(spec, ":")
	count, what, _ := strings.Cut(rest, ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 1 {
		n = 1
	}
	p := &point{name: name, stop: what == "stop"}
	p.left.Store(n)
	armed.Store(p)
}

// Hit kills the process with SIGKILL, or stops it, if the point of that name is armed and this is its turn.
func Hit(name string) {
	p := armed.Load()
	if p == nil || p.name != name || p.left.Add(-1) != 0 {
		return
	}
	if p.stop {
		stopSelf()
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // never goes on: the signal is on its way
}
