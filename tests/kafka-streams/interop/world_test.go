package interop

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/streams"
)

// patience bounds every wait. A Java program on a busy machine takes its time.
const patience = 2 * time.Minute

// scratch is the folder of the compiled program.
var scratch string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "interop-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	code := m.Run()
	if err := testbroker.Leaks(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// clients are those that this build has; cgo_test.go adds its own.
var clients = []kafka.Client{franz.Client{}}

var guarantees = []streams.Guarantee{streams.AtLeastOnce, streams.ExactlyOnce}

type partition struct {
	topic  string
	number int32
}

// env is one application on the broker: its topics, what was put into them, and what must
// have come of it.
type env struct {
	t         *testing.T
	b         testbroker.Broker
	client    kafka.Client
	guarantee streams.Guarantee

	app, words, counts, pairs, histories, kinds string
	// half: the application is only what becomes of the pairs, with their own timestamps. That is one task for each
	// partition, as the embedded form has.
	half bool

	cl  *kgo.Client
	adm *kadm.Client
	*oracle
}

func newEnv(t *testing.T, client kafka.Client, g streams.Guarantee) *env {
	t.Helper()
	if testing.Short() {
		t.Skip("starts Java programs")
	}
	b := testbroker.Real(t)
	needJava(t)
	e := &env{t: t, b: b, client: client, guarantee: g, oracle: newOracle()}
	e.app, e.words, e.counts = b.Name(t, "interop"), b.Name(t, "words"), b.Name(t, "counts")
	e.pairs, e.histories, e.kinds = b.Name(t, "pairs"), b.Name(t, "histories"), b.Name(t, "kinds")
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	e.cl, e.adm = cl, kadm.NewClient(cl)
	admin, err := client.NewAdmin(kafka.Settings{Brokers: b.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(e.ctx()) }()
	for _, topic := range []string{e.words, e.counts, e.pairs, e.histories, e.kinds} {
		if err := admin.CreateTopics(e.ctx(), kafka.NewTopic{Name: topic, Partitions: partitions, Replication: 1}); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func (e *env) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	e.t.Cleanup(cancel)
	return ctx
}

func (e *env) repartition() string           { return e.app + "-counts-repartition" }
func (e *env) changelog(store string) string { return e.app + "-" + store + "-changelog" }

func (e *env) javaGuarantee() string {
	if e.guarantee == streams.ExactlyOnce {
		return "exactly_once_v2"
	}
	return "at_least_once"
}

// produce writes a part of the input, and tells the oracle.
func (e *env) produce(in input) {
	e.t.Helper()
	var out []*kgo.Record
	add := func(topic string, records []*kgo.Record) {
		for _, r := range records {
			out = append(out, &kgo.Record{Topic: topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp})
		}
	}
	if e.half {
		in.lines = nil
	}
	add(e.words, in.lines)
	add(e.pairs, in.pairs)
	if err := e.cl.ProduceSync(e.ctx(), out...).FirstErr(); err != nil {
		e.t.Fatal(err)
	}
	for _, r := range in.lines {
		e.line(e, r)
	}
	for _, r := range in.pairs {
		e.pair(e, r)
		e.keep(r, e.shift)
	}
}

// produceAborted leaves records in topics that no reader of committed records sees.
func (e *env) produceAborted(records ...*kgo.Record) {
	e.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(e.b.Addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(e.app+"-aborted"))
	if err != nil {
		e.t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		e.t.Fatal(err)
	}
	if err := cl.ProduceSync(e.ctx(), records...).FirstErr(); err != nil {
		e.t.Fatal(err)
	}
	if err := cl.EndTransaction(e.ctx(), kgo.TryAbort); err != nil {
		e.t.Fatal(err)
	}
}

// read gives all committed records of a topic, in order within a partition.
func (e *env) read(topic string) []*kgo.Record {
	e.t.Helper()
	ends, err := e.adm.ListEndOffsets(e.ctx(), topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		e.t.Fatal(err)
	}
	from, left := map[int32]kgo.Offset{}, map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			from[o.Partition], left[o.Partition] = kgo.NewOffset().AtStart(), o.Offset
		}
	})
	if len(from) == 0 {
		return nil
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(e.b.Addrs...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		e.t.Fatal(err)
	}
	defer cl.Close()
	var out []*kgo.Record
	for ctx := e.ctx(); len(left) > 0; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			e.t.Fatalf("read %s: %v; left %v", topic, err, left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				out = append(out, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return out
}

// view is what each key has at the end of a topic.
func (e *env) view(topic string) map[string]entry {
	e.t.Helper()
	out := map[string]entry{}
	for _, r := range e.read(topic) {
		out[string(r.Key)] = entry{Partition: r.Partition, Value: string(r.Value), Null: r.Value == nil, Time: r.Timestamp.UnixMilli()}
	}
	return out
}

// awaitOutputs waits until both outputs are complete.
func (e *env) awaitOutputs() {
	e.t.Helper()
	e.until("the outputs are those of the input", func() string {
		return e.diffKinds() + cmp.Diff(e.countsOut, e.noPartition(e.view(e.counts), e.countsOut)) + cmp.Diff(e.historiesOut, e.noPartition(e.view(e.histories), e.historiesOut))
	})
}

// noPartition takes the partitions of want: those of the outputs are nobody's business here.
func (e *env) noPartition(got, want map[string]entry) map[string]entry {
	for key, x := range got {
		x.Partition = want[key].Partition
		got[key] = x
	}
	return got
}

// until waits until missing gives an empty text.
func (e *env) until(what string, missing func() string) {
	e.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		text := missing()
		if text == "" {
			return
		}
		if time.Now().After(end) {
			e.t.Fatalf("after %v it is not so that %s:\n%s", patience, what, text)
		}
	}
}

// awaitEmptyGroup waits until the group has no member.
func (e *env) awaitEmptyGroup() {
	e.t.Helper()
	e.until("the group is empty", func() string {
		groups, err := e.adm.DescribeGroups(e.ctx(), e.app)
		if err == nil {
			err = groups.Error()
		}
		if err != nil {
			return err.Error()
		}
		if g := groups[e.app]; g.State != "Empty" {
			return fmt.Sprintf("%s, %d members", g.State, len(g.Members))
		}
		return ""
	})
}

// checkChangelogs compares what the changelogs hold at their ends with the oracle, byte by byte.
func (e *env) checkChangelogs() {
	e.t.Helper()
	stores := map[string]map[string]entry{"counts": e.oracle.counts, "plain": e.plain, "stamped": e.stamped}
	if e.half {
		delete(stores, "counts")
	}
	for store, want := range stores {
		if diff := cmp.Diff(want, e.view(e.changelog(store))); diff != "" {
			e.t.Errorf("changelog of %s: -want +got\n%s", store, diff)
		}
	}
	e.checkKinds()
}

// checkOutputs compares each single output with the oracle: nothing is missing, and nothing
// came twice. Under at-least-once that is so because nobody was killed.
func (e *env) checkOutputs() {
	e.t.Helper()
	histories := map[string][]string{}
	for _, r := range e.read(e.histories) {
		value := "null"
		if r.Value != nil {
			value = string(r.Value)
		}
		histories[string(r.Key)] = append(histories[string(r.Key)], value)
	}
	if diff := cmp.Diff(e.oracle.histories, histories); diff != "" {
		e.t.Errorf("histories: -want +got\n%s", diff)
	}
	if diff := e.diffKinds(); diff != "" {
		e.t.Errorf("kinds: -want +got\n%s", diff)
	}
	numbers := map[string][]int64{}
	for _, r := range e.read(e.counts) {
		if len(r.Value) != 8 {
			e.t.Fatalf("count %q of %s", r.Value, r.Key)
		}
		numbers[string(r.Key)] = append(numbers[string(r.Key)], int64(binary.BigEndian.Uint64(r.Value)))
	}
	for w, n := range e.oracle.words {
		var want []int64
		for i := range n {
			want = append(want, i+1)
		}
		if !slices.Equal(want, numbers[w]) {
			e.t.Errorf("counts of %s: %v, want 1 to %d", w, numbers[w], n)
		}
	}
}

// dir is a folder of the test's.
func (e *env) dir(name string) string { return filepath.Join(e.t.TempDir(), name) }
