package embedded

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-streams/tidemark/embedded"
	"github.com/tidemark-streams/tidemark/embedded/franz"
	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	kafkafranz "github.com/tidemark-streams/tidemark/kafka/franz"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/offsetcache"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// record is a message of either client.
type record struct {
	topic      string
	partition  int32
	offset     int64
	key, value string
}

// function is what a test does with a record.
type function func(t *embedded.Task, r record) error

// loop is a user's loop around one consumer.
type loop interface {
	// poll polls once, for a short while, and processes what came. It goes on after an error, as loops do, and gives the first.
	poll(f function) error
	Commit(context.Context) error
	Close(context.Context) error
	Err() error
	Ready() []kafka.TopicPartition
	Status() task.Status
	Offsets() []offsetcache.Task
	Scan() *offsetcache.Scan
	Lags(context.Context) (map[int32][]offsetcache.Lag, error)
	Snapshot(ctx context.Context, dir string) error
	SetCacheBytes(n int64)
	StoreStats() statestore.ResourceStats
}

// door opens a loop: one client with one assignor.
type door struct {
	name string
	open func(brokers []string, group string, topics []string, cfg embedded.Config) (loop, error)
}

// doors are those of this build; cgo_test.go adds its own.
var doors = []door{
	{"franz-cooperative", franzDoor(kgo.CooperativeStickyBalancer())},
	{"franz-range", franzDoor(kgo.RangeBalancer())},
}

// staticDoors, by name: members with an instance id, which count the rebalances that take something from them.
var staticDoors = map[string]func(instance string, taken *atomic.Int32) func([]string, string, []string, embedded.Config) (loop, error){
	"franz": func(instance string, taken *atomic.Int32) func([]string, string, []string, embedded.Config) (loop, error) {
		revoked := func(context.Context, *kgo.Client, map[string][]int32) { taken.Add(1) }
		return franzDoor(kgo.RangeBalancer(), kgo.InstanceID(instance), kgo.OnPartitionsRevoked(revoked))
	},
}

// otherAssignors are tried in fewer tests.
var otherAssignors = []door{{"franz-roundrobin", franzDoor(kgo.RoundRobinBalancer())}, {"franz-sticky", franzDoor(kgo.StickyBalancer())},
	{"franz-" + brokersOwn, franzDoor(kgo.RangeBalancer(), kgo.ServerSideBalancer())}}

// rangeDoors keep the partitions of several topics together.
var rangeDoors = []door{{"franz-range", franzDoor(kgo.RangeBalancer())}}

// brokersOwn ends the name of a door whose group uses KIP-848: the broker assigns. Of the doors of every test it is consumerProtocol.
const (
	brokersOwn       = "consumer-protocol"
	consumerProtocol = "confluent-" + brokersOwn
)

// clientID tells the broker which loop it is.
var clientID = "loop"

type franzLoop struct{ *franz.Host }

func franzDoor(assignor kgo.GroupBalancer, more ...kgo.Opt) func([]string, string, []string, embedded.Config) (loop, error) {
	return func(brokers []string, group string, topics []string, cfg embedded.Config) (loop, error) {
		h, err := franz.Open(context.Background(), append([]kgo.Opt{kgo.SeedBrokers(brokers...), kgo.ConsumerGroup(group), kgo.ClientID(clientID), kgo.ConsumeTopics(topics...),
			kgo.Balancers(assignor), kgo.HeartbeatInterval(50 * time.Millisecond), kgo.SessionTimeout(4 * time.Second), kgo.RebalanceTimeout(5 * time.Second), kgo.MetadataMinAge(50 * time.Millisecond)}, more...), cfg)
		if err != nil {
			return nil, err
		}
		return franzLoop{h}, nil
	}
}

func (l franzLoop) poll(f function) (first error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	for _, r := range l.Client().PollFetches(ctx).Records() {
		err := l.Process(r, func(t *embedded.Task) error {
			return f(t, record{r.Topic, r.Partition, r.Offset, string(r.Key), string(r.Value)})
		})
		if first == nil {
			first = err
		}
	}
	return first
}

func sorted(tps []kafka.TopicPartition) []kafka.TopicPartition {
	return slices.SortedFunc(slices.Values(tps), func(a, b kafka.TopicPartition) int { return cmp.Compare(a.String(), b.String()) })
}

// counts is the store of the tests.
var counts = processor.KeyValue("counts", serde.String, serde.Int64)

// count counts a key, and sends the count to topic out.
func count(t *embedded.Task, key, out string) error {
	s := counts.In(t)
	n, _, err := s.Get(key)
	if err != nil {
		return err
	}
	if err := s.Put(key, n+1); err != nil {
		return err
	}
	return t.Send(out, []byte(key), []byte(strconv.FormatInt(n+1, 10)))
}

// world is a broker with an input and an output topic of four partitions.
type world struct {
	t       *testing.T
	b       testbroker.Broker
	door    string
	app     string
	in, out string
	open    func([]string, string, []string, embedded.Config) (loop, error)
	seq     int
	told    []error // by Process, in until
	classic bool    // the group's protocol
}

// each runs a test with the doors whose turn it is, of both clients, or with all of them (testbroker.Takes), on the embedded broker.
func each(t *testing.T, test func(w *world)) {
	for i, d := range doors {
		if !testbroker.Takes(t, i, 0) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, d))
		})
	}
}

// everywhere runs a test with every door, on brokers; with -short it is each.
func everywhere(t *testing.T, test func(w *world)) {
	if testing.Short() {
		each(t, test)
		return
	}
	on(t, doors, test)
}

func on(t *testing.T, doors []door, test func(w *world)) {
	for i, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			brokers(t, i, func(t *testing.T, b testbroker.Broker) { test(newWorldOn(t, b, d)) })
		})
	}
}

// brokers runs a test of the i-th door on the embedded broker or on Apache Kafka, or on both (testbroker.Takes). With -short it
// leaves Apache Kafka out, which makes it wait for real sessions and transactions.
func brokers(t *testing.T, i int, test func(t *testing.T, b testbroker.Broker)) {
	for j, b := range []struct {
		name string
		get  func(*testing.T) testbroker.Broker
	}{{"kfake", fake}, {"kafka", real}} {
		takes := testbroker.Takes(t, i, j)
		if testing.Short() {
			takes = j == 0
		}
		if !takes {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			test(t, b.get(t))
		})
	}
}

// real gives Apache Kafka, or skips the test.
func real(t *testing.T) testbroker.Broker {
	if testing.Short() {
		t.Skip("on Apache Kafka it waits for sessions and transactions")
	}
	return testbroker.Real(t)
}

func fake(t *testing.T) testbroker.Broker {
	timing := kfake.BrokerConfigs(map[string]string{"group.consumer.heartbeat.interval.ms": "200", "group.consumer.session.timeout.ms": "6000"})
	b := testbroker.Kfake(t, timing)
	outliveRebalance(b.Cluster)
	return b
}

func newWorld(t *testing.T, d door) *world { return newWorldOn(t, fake(t), d) }

// outliveRebalance makes the sessions of the embedded broker longer than its rebalances. A leader that is killed while it waits
// for the answer to its join keeps the others waiting in their syncs until the rebalance timeout. kfake takes the first of them
// whose session ends before that for one that has joined, counts one too few from then on, and waits out every rebalance of the
// group; members that begin anew in the meantime prolong it, three of them for ever. With this the rebalance timeout comes first, and answers all.
func outliveRebalance(cluster *kfake.Cluster) {
	cluster.ControlKey(int16(kmsg.JoinGroup), func(r kmsg.Request) (kmsg.Response, error, bool) { // the form is kfake's
		req := r.(*kmsg.JoinGroupRequest)
		if wait := req.RebalanceTimeoutMillis; wait <= 10_000 { // not those of clients' defaults
			req.SessionTimeoutMillis = max(req.SessionTimeoutMillis, wait+500)
		}
		return nil, nil, false
	})
}

func newWorldOn(t *testing.T, b testbroker.Broker, d door) *world {
	return &world{t: t, b: b, door: d.name, app: b.Name(t, "app"), in: b.CreateTopic(t, "in", 4, nil), out: b.CreateTopic(t, "out", 4, nil), open: d.open, classic: !strings.HasSuffix(d.name, brokersOwn)}
}

func (w *world) config(dir string, g embedded.Guarantee) embedded.Config {
	cfg := embedded.Config{App: w.app, StateDir: dir, Stores: []processor.StoreDef{counts}, Guarantee: g, Outputs: []string{w.out}, Logger: slog.New(slog.DiscardHandler)}
	cfg.Limits.CommitInterval = 30 * time.Millisecond
	return cfg
}

func (w *world) start(cfg embedded.Config) loop {
	w.t.Helper()
	l, err := w.open(w.b.Addrs, w.app+"-group", []string{w.in}, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *world) close(l loop) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		w.t.Error("close:", err)
	}
}

// until runs the loop until done.
func (w *world) until(l loop, f function, what string, done func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !done() {
		if err := l.Err(); err != nil {
			w.t.Fatal(err)
		}
		if err := l.poll(f); err != nil {
			w.told = append(w.told, err)
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("it is still not true that %s; ready %v", what, l.Ready())
		}
	}
}

// key of the i-th record: ten keys in turn.
func key(i int) string { return fmt.Sprintf("key-%d", i%10) }

// produce writes n more records.
func (w *world) produce(n int) {
	w.t.Helper()
	p, err := kafkafranz.Client{}.NewProducer(w.b.Settings(), kafka.ProducerConfig{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	var records []kafka.Record
	for range n {
		k := []byte(key(w.seq))
		records = append(records, kafka.Record{Topic: w.in, Partition: kafka.Partition(k, 4), Timestamp: int64(1000 + w.seq), Key: k, Value: []byte(strconv.Itoa(w.seq))})
		w.seq++
	}
	sent := make(chan error, 1)
	if err := p.Send(context.Background(), records, func(d kafka.Delivery) { sent <- d.Err }); err != nil {
		w.t.Fatal(err)
	}
	if err := <-sent; err != nil {
		w.t.Fatal(err)
	}
}

// watch follows the output topic as a read_committed reader: by key the counts, in order.
type watch struct {
	mu     sync.Mutex
	counts map[string][]int64
}

func (w *world) watch() *watch {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.b.Addrs...), kgo.ConsumeTopics(w.out), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		w.t.Fatal(err)
	}
	x := &watch{counts: map[string][]int64{}}
	done := make(chan struct{})
	go func() { // ended by the client's close
		defer close(done)
		for {
			f := cl.PollFetches(context.Background())
			if f.IsClientClosed() {
				return
			}
			x.mu.Lock()
			f.EachRecord(func(r *kgo.Record) {
				n, _ := strconv.ParseInt(string(r.Value), 10, 64)
				x.counts[string(r.Key)] = append(x.counts[string(r.Key)], n)
			})
			x.mu.Unlock()
		}
	}()
	w.t.Cleanup(func() { cl.Close(); <-done })
	return x
}

// reached tells whether the last count of every key is that of n records.
func (x *watch) reached(n int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range min(n, 10) {
		var largest int64
		for _, c := range x.counts[key(i)] {
			largest = max(largest, c)
		}
		if largest < int64((n-i+9)/10) {
			return false
		}
	}
	return true
}

// check finds what a guarantee forbids after n records: a count that was never reached or is too
// large; under exactly-once also one that came twice or out of order.
func (x *watch) check(t *testing.T, n int, g embedded.Guarantee) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range min(n, 10) {
		got, want := x.counts[key(i)], int64((n-i+9)/10)
		seen := map[int64]bool{}
		for j, c := range got {
			if g == embedded.ExactlyOnce && c != int64(j+1) {
				t.Errorf("%s: output %d is %d: %v", key(i), j, c, got)
				break
			}
			seen[c] = true
		}
		for c := int64(1); c <= want; c++ {
			if !seen[c] {
				t.Errorf("%s: count %d never came: %v", key(i), c, got)
				break
			}
		}
		if seen[want+1] {
			t.Errorf("%s: counted more than the %d records: %v", key(i), want, got)
		}
	}
}

var eventually = kafkatest.Eventually

// both runs a test under both guarantees.
func both(t *testing.T, test func(t *testing.T, g embedded.Guarantee)) {
	for _, g := range guarantees {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			test(t, g)
		})
	}
}

var guarantees = []embedded.Guarantee{embedded.AtLeastOnce, embedded.ExactlyOnce}
