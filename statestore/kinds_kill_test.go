package statestore

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testseed"
)

func init() {
	children["commit all kinds until killed"] = commitKindsUntilKilled
}

// exiting ends the child on an error.
type exiting struct{}

func (exiting) Helper() {}
func (exiting) Fatal(args ...any) {
	fmt.Println(append([]any{"error:"}, args...)...)
	os.Exit(1)
}
func (e exiting) Fatalf(format string, args ...any) { e.Fatal(fmt.Sprintf(format, args...)) }

// commitKindsUntilKilled says what the state is before each commit, and what is durable. Whoever
// kills it knows by that what may be left.
func commitKindsUntilKilled() {
	c, e := &kindsScript{}, exiting{}
	s, err := Open(os.Getenv(killDirEnv), Options{Logger: slog.New(slog.DiscardHandler), SyncInterval: 3 * time.Millisecond, MemTableBytes: 256 << 10})
	exitOn(err)
	exitOn(s.Register(append(c.specs(), countsSpec, latestSpec)...))
	counts, err := s.KeyValue("counts")
	exitOn(err)
	latest, err := s.KeyValue("latest")
	exitOn(err)
	digest := func() string {
		h := sha256.New()
		fmt.Fprintln(h, c.dump(s))
		for _, kv := range []*KeyValue{counts, latest} {
			for x, err := range kv.All() {
				exitOn(err)
				fmt.Fprintf(h, "%q %q %d\n", x.Key, x.Value, x.Timestamp)
			}
		}
		return fmt.Sprintf("%x", h.Sum(nil)[:8])
	}
	n := s.CommitID().Number
	if next, _ := s.CommittedOffsets()["sessions"].Next(); next != n || s.StreamTime() != max(n, NoStreamTime) && n > 0 {
		e.Fatalf("commit %d has offset %d and stream time %d", n, next, s.StreamTime())
	}
	fmt.Println("recovered", n, digest())
	pad := make([]byte, 3000)
	for {
		n++
		c.write(e, s, n)
		exitOn(counts.Put(fmt.Append(nil, "key-", n%50), fmt.Append(nil, n), n))
		exitOn(latest.Put(fmt.Append(nil, "key-", n%20), fmt.Append(pad, n), n))
		exitOn(latest.DeleteRange([]byte("key-1"), []byte("key-10"), n))
		fmt.Println("begun", n, digest())
		x, err := s.Seal(Progress{ID: CommitID{1, n}, StreamTime: n})
		exitOn(err)
		exitOn(s.Commit(x, map[string]Offset{"sessions": At(n)}))
		s.Release(x)
		if n%7 == 0 {
			exitOn(s.Sync())
		}
		if next, ok := s.DurableOffsets()["sessions"].Next(); ok {
			fmt.Println("durable", next, "-")
		}
	}
}

// TestKill9OfAllKinds kills a process that commits to stores of all kinds, again and again. What
// is left is each time the state of one commit, and of none before the last one that was durable.
func TestKill9OfAllKinds(t *testing.T) {
	t.Parallel()
	rng := testseed.New(t)
	dir := filepath.Join(t.TempDir(), "app", "0_0")
	k := &killer{begun: map[int64]string{}}
	recovered := map[int64]bool{}
	for range *killRounds {
		recovered[k.round(t, rng, dir)] = true
	}
	t.Logf("commit %d after %d kills, %d different ones recovered", k.durable, *killRounds, len(recovered))
	if len(recovered) < *killRounds/4 {
		t.Error("almost nothing was committed between the kills")
	}
}

// killer knows what its children said.
type killer struct {
	begun   map[int64]string // digests
	durable int64
}

func (k *killer) round(t *testing.T, rng *rand.Rand, dir string) (recovered int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=commit all kinds until killed", killDirEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var kill *time.Timer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var word, digest string
		var n int64
		if _, err := fmt.Sscan(lines.Text(), &word, &n, &digest); err != nil || len(digest) != 16 && digest != "-" {
			if word == "error:" {
				t.Errorf("the child says %s", lines.Text())
			}
			continue // the last line may be cut short
		}
		switch word {
		case "recovered":
			recovered = n
			if want := k.begun[n]; n > 0 && digest != want || n < k.durable {
				t.Errorf("recovered commit %d, %s; it was %s, and %d was durable", n, digest, want, k.durable)
			}
			kill = time.AfterFunc(time.Duration(rng.IntN(40_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		case "begun":
			k.begun[n] = digest
		case "durable":
			k.durable = max(k.durable, n)
		}
	}
	err = cmd.Wait()
	if kill == nil || err == nil || err.Error() != "signal: killed" {
		t.Fatalf("the child ended by itself: %v", err)
	}
	kill.Stop()
	return recovered
}
