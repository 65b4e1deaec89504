package statestore

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var killRounds = flag.Int("kill-rounds", 20, "how often the child is killed")

const killDirEnv = "TIDEMARK_STATESTORE_DIR"

func init() {
	children["commit until killed"] = commitUntilKilled
}

// commitUntilKilled says what it recovered, then commits for ever and says what is durable.
func commitUntilKilled() {
	c := &script{big: 40}
	dir := os.Getenv(killDirEnv)
	o := Options{Logger: slog.New(slog.DiscardHandler), SyncInterval: 3 * time.Millisecond, MemTableBytes: 256 << 10}
	n, err := c.verify(dir, o)
	exitOn(err)
	fmt.Printf("recovered %d\n", n)
	s, err := c.open(dir, o)
	exitOn(err)
	for {
		n++
		exitOn(c.commit(s, int(n)))
		if n%7 == 0 {
			exitOn(s.Sync())
			fmt.Printf("durable %d\n", n)
		}
		if next, ok := s.DurableOffsets()["counts"].Next(); ok {
			fmt.Printf("durable %d\n", next)
		}
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// TestKill9 kills a process that commits, again and again in the same directory. Each time
// data, offsets and positions must be those of one commit, and none that was said to be
// durable may be missing.
func TestKill9(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "app", "0_0")
	var durable, first int64
	for round := range *killRounds {
		recovered, last := killRound(t, dir, time.Duration(rng.IntN(40_000))*time.Microsecond)
		if recovered < durable {
			t.Fatalf("round %d: recovered commit %d; %d was durable", round, recovered, durable)
		}
		durable = max(last, recovered)
		if round == 0 {
			first = durable
		}
	}
	t.Logf("commit %d after %d kills", durable, *killRounds)
	if durable <= first {
		t.Error("nothing was committed between the kills")
	}
}

// killRound starts the child, kills it some time after it has recovered, and gives what it
// said.
func killRound(t *testing.T, dir string, after time.Duration) (recovered, durable int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=commit until killed", killDirEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	must(t, cmd.Start())
	var kill *time.Timer
	recovered = -1
	said := "nothing"
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = lines.Text()
		word, number, _ := strings.Cut(said, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue // the last line may be cut short, or an error
		}
		switch word {
		case "recovered":
			recovered = n
			kill = time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		case "durable":
			durable = n
		}
	}
	err = cmd.Wait()
	if kill == nil || recovered < 0 || err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the child ended by itself: %v, said last: %s %s", err, said, errs.String())
	}
	kill.Stop()
	return recovered, durable
}
