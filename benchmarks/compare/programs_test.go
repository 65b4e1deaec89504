package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/report"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
)

const (
	records = 6000
	keys    = 500
)

// programs is the folder that TestMain builds them into, as they are run by hand.
var programs string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs = dir
	code := 1
	if out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../load", "../bare", "../count").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// program runs one to its end and gives its standard output.
func program(t *testing.T, path string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", path, strings.Join(args, " "), err, stderr.String())
	}
	return out
}

// read gives the records of a topic, as read_committed shows them, up to the end of each
// partition.
func read(t *testing.T, b testbroker.Broker, topic string) (all []*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	open := map[int32]int64{}
	for partition, end := range ends[topic] {
		if end.Offset > 0 {
			open[partition] = end.Offset
		}
	}
	for len(open) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("read %s, %v are left: %v", topic, open, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= open[r.Partition] {
				delete(open, r.Partition)
			}
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
		})
	}
	return all
}

// verify holds outputs and changelog against the input.
func verify(t *testing.T, b testbroker.Broker, in, out, changelog string) {
	t.Helper()
	want, got, last := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, r := range read(t, b, in) {
		want[string(r.Key)]++
	}
	for _, r := range read(t, b, out) {
		n, err := strconv.ParseInt(string(r.Value), 10, 64)
		if err != nil || n != got[string(r.Key)]+1 {
			t.Fatalf("output %q of key %s after %d: %v", r.Value, r.Key, got[string(r.Key)], err)
		}
		got[string(r.Key)] = n
	}
	if !maps.Equal(got, want) {
		t.Errorf("the counts of %d keys in the output differ from those of %d in the input", len(got), len(want))
	}
	for _, r := range read(t, b, changelog) {
		last[string(r.Key)] = int64(binary.BigEndian.Uint64(r.Value))
	}
	if !maps.Equal(last, want) {
		t.Errorf("the counts of %d keys in the changelog differ from those of %d in the input", len(last), len(want))
	}
}

// job is one program with topics of its own.
type job struct {
	out, changelog string
	args           []string
}

func prepare(t *testing.T, b testbroker.Broker, name, in string) job {
	t.Helper()
	out := b.CreateTopic(t, "out", 4, nil)
	if name == "bare" {
		changes := b.CreateTopic(t, "changes", 4, map[string]string{"cleanup.policy": "compact"})
		return job{out, changes, []string{"-in", in, "-out", out, "-changelog", changes, "-group", b.Name(t, "group")}}
	}
	app := b.Name(t, "app")
	return job{out, app + "-counts-changelog", []string{"-in", in, "-out", out, "-app-id", app, "-state-dir", t.TempDir()}}
}

func load(t *testing.T, b testbroker.Broker) string {
	t.Helper()
	in := b.Name(t, "in")
	program(t, filepath.Join(programs, "load"), "-brokers", strings.Join(b.Addrs, ","), "-topic", in, "-records", fmt.Sprint(records), "-keys", fmt.Sprint(keys))
	return in
}

func TestProgramsCountRight(t *testing.T) {
	testbroker.Each(t, func(t *testing.T, b testbroker.Broker) {
		in := load(t, b)
		for _, name := range []string{"bare", "count"} {
			for _, client := range clients {
				for _, guarantee := range []string{"at-least-once", "exactly-once"} {
					if testing.Short() && guarantee == "at-least-once" {
						continue // the programs are others' processes, which the race detector does not see
					}
					t.Run(name+"/"+client+"/"+guarantee, func(t *testing.T) {
						r := prepare(t, b, name, in)
						line := program(t, filepath.Join(programs, name), append(r.args, "-brokers", strings.Join(b.Addrs, ","), "-client", client,
							"-guarantee", guarantee, "-commit-interval", "20ms", "-until", fmt.Sprint(records))...)
						var f report.Final
						if err := json.Unmarshal(line, &f); err != nil {
							t.Fatalf("last line %q: %v", line, err)
						}
						if f.State != "closed" || f.Processed != records || f.Commits < 1 || f.Seconds <= 0 || f.Client != client || f.Guarantee != guarantee || f.ReadyMS < 0 {
							t.Errorf("final line %s", line)
						}
						verify(t, b, in, r.out, r.changelog)
					})
				}
			}
		}
	})
}

// At SIGTERM what is processed is committed, and the final line is printed.
func TestTerminate(t *testing.T) {
	b := testbroker.Kfake(t)
	in := load(t, b)
	for _, name := range []string{"bare", "count"} {
		t.Run(name, func(t *testing.T) {
			r := prepare(t, b, name, in)
			// Nothing is committed before the end.
			cmd := exec.Command(filepath.Join(programs, name), append(r.args, "-brokers", strings.Join(b.Addrs, ","), "-guarantee", "exactly-once", "-commit-interval", "10m")...)
			progress, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
			var p report.Progress
			for lines := bufio.NewScanner(progress); lines.Scan(); {
				if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
					t.Errorf("line %q: %v", lines.Bytes(), err)
				}
				if p.Processed == records {
					_ = cmd.Process.Signal(syscall.SIGTERM)
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			var f report.Final
			if err := json.Unmarshal([]byte(out.String()), &f); err != nil || f.Commits != 1 || f.Processed != records || f.State != "closed" {
				t.Errorf("final line %q: %v", out.String(), err)
			}
			verify(t, b, in, r.out, r.changelog)
		})
	}
}

func TestCompare(t *testing.T) {
	b := testbroker.Kfake(t)
	var table, log strings.Builder
	file := filepath.Join(t.TempDir(), "runs.json")
	o := options{brokers: strings.Join(b.Addrs, ","), programs: programs, stateDir: t.TempDir(), inputs: inputs{{"few", load(t, b)}}, guarantees: "exactly-once",
		clients: "franz", records: records, interval: 20 * time.Millisecond, rounds: 2, workers: 2, json: file, anyLoad: true}
	if err := run(t.Context(), o, &table, &log); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(table.String(), "\n"); n != 3 || !strings.Contains(table.String(), "| few | exactly-once | franz |") {
		t.Errorf("table\n%s", table.String())
	}
	raw, err := os.ReadFile(file)
	if n := strings.Count(string(raw), "\n"); err != nil || n != 4 {
		t.Errorf("%d runs in the file: %v", n, err)
	}
	left, err := (&bench{adm: admin(t, b)}).topics(t.Context(), "compare-")
	if err != nil || len(left) > 0 {
		t.Errorf("topics left behind: %v, %v", left, err)
	}
}

func admin(t *testing.T, b testbroker.Broker) *kadm.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return kadm.NewClient(cl)
}
