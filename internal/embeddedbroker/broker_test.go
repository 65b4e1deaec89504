package embeddedbroker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/tidemark-streams/tidemark/internal/filelock"
)

// The test binary is also the broker's child, and a program that uses one.
func TestMain(m *testing.M) {
	if os.Getenv(partVariable) == "careless" {
		careless() // before Main, as a program that does not know it
	}
	Main()
	if os.Getenv(partVariable) == "program" {
		program()
	}
	goleak.VerifyTestMain(m)
}

func startBroker(t *testing.T, o Options) *Broker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	b, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func closeBroker(t *testing.T, b *Broker) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func newClient(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func createTopic(t *testing.T, addr, topic string, partitions int32) {
	t.Helper()
	if _, err := kadm.NewClient(newClient(t, addr)).CreateTopic(t.Context(), partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
}

// wantError fails unless err is there and names all of the words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func TestRecordsStayOverRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	b := startBroker(t, Options{Dir: dir})
	createTopic(t, b.Addr(), "t", 1)
	client := newClient(t, b.Addr())
	for i := range 10 {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	client.Close()
	closeBroker(t, b)
	closeBroker(t, b) // a second time it does nothing
	select {
	case <-b.Exited():
	default:
		t.Error("Exited is open after Close")
	}

	again := startBroker(t, Options{Dir: dir})
	if again.Unclean() {
		t.Error("unclean after a clean close")
	}
	if again.Addr() != b.Addr() {
		t.Errorf("address %s, want the free one of before, %s", again.Addr(), b.Addr())
	}
	if again.PID() == b.PID() {
		t.Errorf("both children have process id %d", b.PID())
	}
	if got := len(readCommitted(t, again.Addr(), "t")); got != 10 {
		t.Errorf("%d records after the restart, want 10", got)
	}
}

func TestTakenPortIsGivenUp(t *testing.T) {
	first := startBroker(t, Options{Dir: t.TempDir()})
	_, port, _ := strings.Cut(first.Addr(), ":")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, portFile), []byte(port), 0o600); err != nil {
		t.Fatal(err)
	}
	second := startBroker(t, Options{Dir: dir})
	if second.Addr() == first.Addr() {
		t.Errorf("two brokers at %s", first.Addr())
	}
}

func TestAskedPortMustBeFree(t *testing.T) {
	first := startBroker(t, Options{Dir: t.TempDir()})
	var port int
	if _, err := fmt.Sscanf(first.Addr(), "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{Dir: dir, Port: port})
	wantError(t, err, "address already in use", dir, fmt.Sprint(port))
}

func TestSecondBrokerInTheFolder(t *testing.T) {
	b := startBroker(t, Options{Dir: t.TempDir()})
	begin := time.Now()
	_, err := Start(t.Context(), Options{Dir: b.dir, patience: 50 * time.Millisecond})
	wantError(t, err, b.dir, fmt.Sprintf("process %d on ", b.PID()), "another program's broker", "use another folder")
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("the error took %s", d)
	}
	createTopic(t, b.Addr(), "t", 1) // the living broker still answers
}

// A broker that says it is closing is waited for beyond the patience for a living one.
func TestWaitsForClosingBroker(t *testing.T) {
	dir := t.TempDir()
	old, err := filelock.Take(filepath.Join(dir, lockFile), stateClosing)
	if err != nil {
		t.Fatal(err)
	}
	const patience = 100 * time.Millisecond
	type result struct {
		b   *Broker
		err error
	}
	started := make(chan result, 1)
	go func() {
		b, err := Start(t.Context(), Options{Dir: dir, patience: patience})
		started <- result{b, err}
	}()
	select {
	case r := <-started:
		t.Fatalf("started (%v) while another broker was closing", r.err)
	case <-time.After(5 * patience):
	}
	if err := errors.Join(old.SetState(stateClosed), old.Close()); err != nil {
		t.Fatal(err)
	}
	r := <-started
	if r.err != nil {
		t.Fatal(r.err)
	}
	if r.b.Unclean() {
		t.Error("unclean, but the other closed cleanly")
	}
	closeBroker(t, r.b)
}

func TestStartIsCancelled(t *testing.T) {
	dir := t.TempDir()
	old, err := filelock.Take(filepath.Join(dir, lockFile), stateClosing)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = Start(ctx, Options{Dir: dir})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start: %v, want the context's error", err)
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("Start returned after %s", d)
	}
}

func TestBrokerKilledIsUnclean(t *testing.T) {
	b := startBroker(t, Options{Dir: t.TempDir()})
	if err := syscall.Kill(b.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-b.Exited()
	wantError(t, b.Close(), "signal: killed", b.dir)
	again := startBroker(t, Options{Dir: b.dir})
	if !again.Unclean() {
		t.Error("not unclean after a kill -9 of the broker")
	}
	closeBroker(t, again)
	if startBroker(t, Options{Dir: b.dir}).Unclean() {
		t.Error("unclean after a clean close")
	}
}

func TestSignals(t *testing.T) {
	b := startBroker(t, Options{Dir: t.TempDir()})
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM} {
		if err := syscall.Kill(b.PID(), sig); err != nil {
			t.Fatal(err)
		}
		if sig == syscall.SIGTERM {
			break
		}
		createTopic(t, b.Addr(), "after-"+sig.String(), 1) // it still answers
	}
	<-b.Exited()
	closeBroker(t, b) // SIGTERM closes cleanly
	if startBroker(t, Options{Dir: b.dir}).Unclean() {
		t.Error("unclean after SIGTERM")
	}
}

func TestBadFolders(t *testing.T) {
	_, err := Start(t.Context(), Options{})
	wantError(t, err, "no folder given")

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Options{Dir: file})
	wantError(t, err, file, "not a directory")

	damaged := t.TempDir()
	closeBroker(t, startBroker(t, Options{Dir: damaged}))
	if err := os.WriteFile(filepath.Join(damaged, dataDir, "topics.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Options{Dir: damaged})
	wantError(t, err, damaged, "open the broker's log", "topics.json")
}

func TestFailedStartLeavesTheFolderClean(t *testing.T) {
	first := startBroker(t, Options{Dir: t.TempDir()})
	closeBroker(t, first)
	other := startBroker(t, Options{Dir: t.TempDir()})
	var port int
	if _, err := fmt.Sscanf(other.Addr(), "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: first.dir, Port: port}); err == nil {
		t.Fatal("two brokers on one port")
	}
	if startBroker(t, Options{Dir: first.dir}).Unclean() {
		t.Error("unclean after a start that failed")
	}
}

func TestLogThatCannotBeWrittenIsUnclean(t *testing.T) {
	b := startBroker(t, Options{Dir: t.TempDir()})
	data := filepath.Join(b.dir, dataDir)
	if err := os.Rename(data, data+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, b.Close(), b.dir, "exit status 1", "failed writes", "not a directory")
	if err := errors.Join(os.Remove(data), os.Rename(data+".away", data)); err != nil {
		t.Fatal(err)
	}
	if !startBroker(t, Options{Dir: b.dir}).Unclean() {
		t.Error("not unclean after a close that could not write")
	}
}

// A log whose records were deleted to its end does not begin at 0 again.
func TestDeletedRecordsKeepTheirOffsets(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, Options{Dir: dir})
	createTopic(t, b.Addr(), "t", 1)
	client := newClient(t, b.Addr())
	for i := range 10 {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var before kadm.Offsets
	before.Add(kadm.Offset{Topic: "t", Partition: 0, At: 10})
	for range 2 { // a second deletion too
		if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), before); err != nil {
			t.Fatal(err)
		}
	}
	client.Close()
	closeBroker(t, b)

	client = newClient(t, startBroker(t, Options{Dir: dir}).Addr())
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	if end, _ := ends.Lookup("t", 0); end.Offset != 10 {
		t.Errorf("the log ends at %d after the restart, want 10", end.Offset)
	}
}

func TestConfigReachesTheBroker(t *testing.T) {
	b := startBroker(t, Options{Dir: t.TempDir(), Config: map[string]string{"message.max.bytes": "2000"}})
	createTopic(t, b.Addr(), "t", 1)
	client := newClient(t, b.Addr(), kgo.ProducerBatchCompression(kgo.NoCompression()))
	err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: make([]byte, 5000)}).FirstErr()
	if err == nil || !strings.Contains(err.Error(), "MESSAGE_TOO_LARGE") {
		t.Errorf("produced 5000 bytes with a limit of 2000: %v", err)
	}
}

// careless is a program that does not call Main: its child runs it again.
func careless() {
	_, err := Start(context.Background(), Options{Dir: os.Getenv(dirVariable)})
	fmt.Println(err)
	os.Exit(0)
}

func TestProgramThatForgotMain(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), partVariable+"=careless", dirVariable+"="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "does main call embeddedbroker.Main first?") {
		t.Errorf("the program got %q", out)
	}
}
