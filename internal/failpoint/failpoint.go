package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Env names the environment variable that arms a point: "name" or "name:n" for the n-th time.
const Env = "TIDEMARK_FAILPOINT"

type point struct {
	name string
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
	name, count, _ := strings.Cut(spec, ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 1 {
		n = 1
	}
	p := &point{name: name}
	p.left.Store(n)
	armed.Store(p)
}

// Hit kills the process with SIGKILL if the point of that name is armed and this is its turn.
func Hit(name string) {
	p := armed.Load()
	if p == nil || p.name != name || p.left.Add(-1) != 0 {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // never goes on: the signal is on its way
}
