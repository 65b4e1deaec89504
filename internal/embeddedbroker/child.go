package embeddedbroker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/internal/filelock"
	"github.com/tidemark-streams/tidemark/internal/kfakefetch"
)

// childVariable makes a process the broker; its value is the order.
const childVariable = "TIDEMARK_EMBEDDED_BROKER"

// order is what the parent tells the child.
type order struct {
	Dir          string
	Port         int
	Advertised   string
	Config       map[string]string
	Patience     time.Duration
	CloseTimeout time.Duration
}

// hello is the child's one line on standard output.
type hello struct {
	Addr    string
	Unclean bool
	Error   string
}

// The states in the lock file. Only stateClosed says that the log is whole.
const (
	stateRunning = "running"
	stateClosing = "closing"
	stateClosed  = "closed"
)

const (
	lockFile = "lock"
	portFile = "port"
	dataDir  = "data"
)

// Main turns the process into the broker when [Start] started it as one, and then does
// not return; in every other process it does nothing. Call it first in main, before
// flags are parsed and anything is opened, and first in TestMain.
func Main() {
	text := os.Getenv(childVariable)
	if text == "" {
		return
	}
	// Ctrl-C and a closing terminal reach the whole process group. The parent decides
	// what they mean, and the end of our input tells us.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
	// The parent may be gone when we write; that must not end us before the log is closed.
	signal.Ignore(syscall.SIGPIPE)
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		complain(fmt.Errorf("bad order %q: %w", text, err))
		os.Exit(2)
	}
	ready, err := serve(o)
	switch {
	case err == nil:
		os.Exit(0)
	case ready:
		complain(err)
	default:
		say(hello{Error: err.Error()})
	}
	os.Exit(1)
}

func say(h hello) {
	line, err := json.Marshal(h)
	if err != nil {
		return // a struct of strings and a bool
	}
	_, _ = os.Stdout.Write(append(line, '\n')) // without a parent nobody listens
}

// serve runs the broker until the parent is gone or a SIGTERM comes. It reports whether
// the parent was told that the broker is ready.
func serve(o order) (ready bool, err error) {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, os.Stdin) // nothing is ever sent; what ends it does not matter
	}()

	lock, err := takeLock(o, gone)
	if err != nil {
		return false, err
	}
	previous := lock.Previous().State
	var own net.Listener
	cluster, failures, err := open(o, &own)
	if err != nil {
		// Nothing was changed: the folder is as clean, or not, as it was.
		return false, errors.Join(err, lock.SetState(previous))
	}
	addr := own.Addr().String()
	rememberPort(o.Dir, addr)
	say(hello{Addr: addr, Unclean: previous != "" && previous != stateClosed})

	select {
	case <-gone:
	case <-end:
	}
	// First of all: whoever waits for this folder must know that waiting will help.
	stateErr := lock.SetState(stateClosing)
	cluster.Close()
	if n := failures.Load(); n > 0 {
		return true, fmt.Errorf("the broker reported %d failed writes, so that its log in %s may not be whole", n, o.Dir)
	}
	return true, errors.Join(stateErr, lock.SetState(stateClosed), lock.Close())
}

// takeLock takes the folder's lock. It waits for a broker that is closing, and for a
// moment for one that may be about to: its program was killed just now.
func takeLock(o order, gone <-chan struct{}) (*filelock.Lock, error) {
	start := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		lock, err := filelock.Take(filepath.Join(o.Dir, lockFile), stateRunning)
		var held *filelock.HeldError
		if !errors.As(err, &held) {
			return lock, err
		}
		limit := o.Patience
		if held.Holder.State == stateClosing {
			limit = o.CloseTimeout
		}
		if time.Since(start) > limit {
			return nil, fmt.Errorf("another program's broker has the folder open: %w; stop that program or use another folder", err)
		}
		select {
		case <-tick.C:
		case <-gone:
			return nil, errors.New("the parent ended before the broker was up")
		}
	}
}

// open starts the cluster. The counter counts what kfake logs as errors: it has no
// other way to say that it could not write. own becomes the listener.
func open(o order, own *net.Listener) (*kfake.Cluster, *atomic.Int64, error) {
	failures := new(atomic.Int64)
	options := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.DataDir(filepath.Join(o.Dir, dataDir)),
		kfake.DefaultNumPartitions(1),
		kfake.GroupMinSessionTimeout(500 * time.Millisecond), // as the real broker of scripts/kafka
		kfake.ListenFn(advertise(o, own)),
		kfake.WithLogger(errorCounter{failures}),
		// A folder that is kept for weeks keeps its groups' offsets too: ten years.
		kfake.BrokerConfigs(map[string]string{"offsets.retention.minutes": "5256000"}),
		kfake.BrokerConfigs(o.Config),
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		return nil, nil, fmt.Errorf("open the broker's log: %w", err)
	}
	cluster.ControlKey(int16(kmsg.DeleteRecords), keepLast)
	kfakefetch.ByPartition(cluster)
	return cluster, failures, nil
}

// keepLast lets the last of the records that are to be deleted stay. Without it a log that was
// deleted to its end has no file left, and begins at offset 0 again when it is next opened. The form is that of kfake's control functions.
func keepLast(r kmsg.Request) (kmsg.Response, error, bool) {
	for _, topic := range r.(*kmsg.DeleteRecordsRequest).Topics {
		for i := range topic.Partitions {
			if p := &topic.Partitions[i]; p.Offset > 0 {
				p.Offset--
			}
		}
	}
	return nil, nil, false
}

// advertise listens, and lets the broker tell its clients another address if one was asked for.
func advertise(o order, own *net.Listener) func(network, address string) (net.Listener, error) {
	listen := listenOn(o)
	return func(network, address string) (l net.Listener, err error) {
		if l, err = listen(network, address); err != nil {
			return nil, err
		}
		*own = l
		if o.Advertised == "" {
			return l, nil
		}
		told, err := net.ResolveTCPAddr("tcp", o.Advertised)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		return advertised{l, told}, nil
	}
}

// advertised is a listener that gives another address for its own.
type advertised struct {
	net.Listener
	addr net.Addr
}

func (a advertised) Addr() net.Addr { return a.addr }

// listenOn listens on the asked port or, when none is asked for, on the folder's last
// one if it is free: clients then find the broker again where it was.
func listenOn(o order) func(network, address string) (net.Listener, error) {
	return func(network, _ string) (net.Listener, error) {
		if o.Port != 0 {
			return net.Listen(network, loopback(o.Port))
		}
		text, _ := os.ReadFile(filepath.Join(o.Dir, portFile)) // a new folder has none
		if port, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16); err == nil && port != 0 {
			if l, err := net.Listen(network, loopback(int(port))); err == nil {
				return l, nil
			}
		}
		return net.Listen(network, loopback(0))
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func rememberPort(dir, addr string) {
	if _, port, err := net.SplitHostPort(addr); err == nil {
		_ = os.WriteFile(filepath.Join(dir, portFile), []byte(port+"\n"), 0o600) // only a convenience
	}
}

// errorCounter logs and counts what means that the disk does not hold what clients were
// told: kfake's errors, and those of its warnings that are about failed writes. Its
// other warnings are about clients' requests.
type errorCounter struct{ failures *atomic.Int64 }

func (c errorCounter) Logf(level kfake.LogLevel, format string, args ...any) {
	if level != kfake.LogLevelError && (level != kfake.LogLevelWarn || !isWriteFailure(format)) {
		return
	}
	c.failures.Add(1)
	complain(fmt.Errorf(format, args...))
}

func isWriteFailure(format string) bool {
	return slices.ContainsFunc([]string{"persist ", "rebuildSegments ", "compact "}, func(prefix string) bool {
		return strings.HasPrefix(format, prefix)
	})
}

// complain writes to the log file, which is the child's standard error.
func complain(err error) {
	fmt.Fprintf(os.Stderr, "%s embedded broker %d: %v\n", time.Now().Format(time.RFC3339), os.Getpid(), err)
}
