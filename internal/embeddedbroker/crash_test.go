package embeddedbroker

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/internal/testseed"
)

const (
	partVariable = "EMBEDDEDBROKER_TEST_PART"
	dirVariable  = "EMBEDDEDBROKER_TEST_DIR"
)

const (
	crashTopic      = "pairs"
	crashPartitions = 2
	perPartition    = 5
)

// program starts the broker, prints "started PID UNCLEAN", and then commits
// transactions until it is killed. Each puts the next number five times into both
// partitions and is printed when its commit was answered.
func program() {
	ctx := context.Background()
	b, err := Start(ctx, Options{Dir: os.Getenv(dirVariable)})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("started", b.PID(), b.Unclean())
	if err := commitPairs(ctx, b.Addr()); err != nil {
		fmt.Println("error", err)
	}
	os.Exit(1)
}

func commitPairs(ctx context.Context, addr string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("program"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		return err
	}
	// A topic that is there from before is what all rounds but the first find.
	if _, err := kadm.NewClient(client).CreateTopics(ctx, crashPartitions, 1, nil, crashTopic); err != nil {
		return err
	}
	numbers, err := read(ctx, addr, crashTopic)
	if err != nil {
		return err
	}
	for next := len(numbers) / (crashPartitions * perPartition); ; next++ {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		for i := range crashPartitions * perPartition {
			r := &kgo.Record{Topic: crashTopic, Partition: int32(i % crashPartitions), Value: []byte(strconv.Itoa(next))}
			// One request each: a kill falls into the middle of a transaction.
			if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
				return err
			}
		}
		if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
			return err
		}
		fmt.Println("committed", next)
	}
}

// The point of the whole package: the program dies by kill -9 in the middle of
// transactions, again and again, and what its broker serves afterwards is right.
func TestProgramKilled(t *testing.T) {
	rng := testseed.New(t)
	dir := t.TempDir()
	answered := -1
	for round := range 8 {
		last := runAndKill(t, dir, rng.IntN(40), time.Duration(rng.IntN(4000))*time.Microsecond)
		answered = max(answered, last)
		// At once, while the killed program's broker may still be closing.
		b := startBroker(t, Options{Dir: dir})
		if b.Unclean() {
			t.Fatalf("round %d: the broker was not closed cleanly", round)
		}
		endOpenTransaction(t, b.Addr())
		checkPairs(t, readCommitted(t, b.Addr(), crashTopic), answered)
		closeBroker(t, b)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	if answered < 8 {
		t.Errorf("only %d transactions in all rounds: nothing was tested", answered+1)
	}
}

// runAndKill kills the program when it has committed so many transactions and a moment
// has passed, and returns the number of the last transaction it was told is committed.
func runAndKill(t *testing.T, dir string, transactions int, moment time.Duration) (last int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), partVariable+"=program", dirVariable+"="+dir)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last = -1
	var end <-chan time.Time
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "started":
			end = time.After(moment)
		case "committed":
			if last, err = strconv.Atoi(rest); err != nil {
				t.Fatal(err)
			}
			transactions--
		default:
			t.Errorf("the program says %q", lines.Text())
		}
		if end != nil && transactions <= 0 {
			transactions = 1 << 30 // once
			<-end
			if err := syscall.Kill(cmd.Process.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the program ended with %v", err)
	}
	return last
}

// endOpenTransaction does what every program does at its start: initialising its
// transactional id ends the transaction of its last life.
func endOpenTransaction(t *testing.T, addr string) {
	t.Helper()
	client := newClient(t, addr, kgo.TransactionalID("program"))
	if _, _, err := client.ProducerID(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// checkPairs: every transaction is there as a whole or not at all, in order, and those
// that were answered are there. One more may be: its answer was lost with the program.
func checkPairs(t *testing.T, numbers []string, answered int) {
	t.Helper()
	count := map[int]int{}
	highest := -1
	for _, text := range numbers {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		count[n]++
		highest = max(highest, n)
	}
	for n := range highest + 1 {
		if count[n] != crashPartitions*perPartition {
			t.Errorf("transaction %d has %d records, want %d", n, count[n], crashPartitions*perPartition)
		}
	}
	if highest != answered && highest != answered+1 {
		t.Errorf("the last transaction is %d, the program was told of %d", highest, answered)
	}
}

func TestClosedProgramLeavesNoChild(t *testing.T) {
	dir := t.TempDir()
	runAndKill(t, dir, 1, 0)
	b := startBroker(t, Options{Dir: dir}) // waits until the child is gone
	text, err := os.ReadFile(b.dir + "/" + logFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(bytes.TrimSpace(text)) != 0 {
		t.Errorf("the child of a killed program wrote: %s", text)
	}
}

func readCommitted(t *testing.T, addr, topic string) []string {
	t.Helper()
	values, err := read(t.Context(), addr, topic)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// read returns the committed values of the topic, up to the ends at the call.
func read(ctx context.Context, addr, topic string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	admin, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	ends, err := kadm.NewClient(admin).ListCommittedOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	start := map[int32]kgo.Offset{}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			start[o.Partition], left[o.Partition] = kgo.NewOffset().At(0), o.Offset
		}
	})
	if len(left) == 0 {
		return nil, nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start}), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var values []string
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return values, nil
}
