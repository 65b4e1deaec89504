package streams_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// Every row of this file is something a user gets wrong, or the world does, and the words
// that must stand in the error.

func TestConfigReportsEverything(t *testing.T) {
	_, err := streams.New(emptyTopology(t), streams.Config{AppID: "no/slash", Brokers: []string{"nohost"}, Workers: -1, CommitInterval: -1, Guarantee: 9, Replication: -2})
	contains(t, err, "AppID", "no/slash", "Brokers", `"nohost" is not host:port`, "StateDir is missing", "Workers is -1", "CommitInterval is -1ns", "Guarantee is 9", "Replication is -2")
	_, err = streams.New(emptyTopology(t), streams.Config{Store: streams.StoreConfig{CacheBytes: -1, BlockCacheBytes: -1, CachingMaxEntries: -1}, Limits: task.Limits{CommitInterval: time.Second, MaxDirtyBytes: 1 << 30, BufferedRecords: -1, MaxTaskIdle: -1}})
	contains(t, err, "Store.CacheBytes is -1", "Store.BlockCacheBytes is -1", "Store.CachingMaxEntries is -1", "Limits.CommitInterval is 1s: it has no effect", "MaxDirtyBytes is 1073741824: it must be at most", "BufferedRecords is -1", "MaxTaskIdle is -1ns")
	_, err = streams.New(emptyTopology(t), streams.Config{})
	contains(t, err, "AppID is missing", "Brokers is empty", "StateDir is missing")
	for _, id := range []string{"a b", "..", ".", "ä", strings.Repeat("x", 250)} {
		_, err := streams.New(emptyTopology(t), streams.Config{AppID: id, Brokers: []string{"h:1"}, StateDir: "x"})
		contains(t, err, "AppID")
	}
}

func emptyTopology(t *testing.T) *streams.Topology { return emptyTopologyOf(t, "in", "out") }

// Every field but the needed ones may be zero.
func TestConfigZeroValueIsDefault(t *testing.T) {
	if _, err := streams.New(emptyTopology(t), streams.Config{AppID: "app", Brokers: []string{"127.0.0.1:1"}, StateDir: t.TempDir()}); err != nil {
		t.Error(err)
	}
}

func TestBrokerUnreachable(t *testing.T) {
	// A port that nobody listens on: taken, and let go.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	for _, c := range clients {
		t.Run(c.Name(), func(t *testing.T) {
			app, err := streams.New(emptyTopology(t), streams.Config{AppID: "app", Brokers: []string{addr}, StateDir: t.TempDir(), Client: c, StartTimeout: time.Second, Logger: discard})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			err = app.Run(context.Background())
			contains(t, err, addr)
			if !kafka.IsClass(err, kafka.ClassUnreachable) {
				t.Errorf("class %v of %v", kafka.ClassOf(err), err)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestUnknownTopic(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		b := streams.NewBuilder()
		streams.Stream(b, e.in+"-nowhere", streams.With(serde.String, serde.String)).To(e.out + "-nowhere")
		topology, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		e.start(topology, e.config()).fails("unknown topic", e.in+"-nowhere", e.out+"-nowhere", "create what is missing")
	})
}

func TestInternalTopicWrong(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		changelog, repartition := e.app+"-counts-changelog", e.app+"-counts-repartition"
		err := e.admin.CreateTopics(e.ctx(), kafka.NewTopic{Name: changelog, Partitions: 2, Replication: 1, Configs: map[string]string{"cleanup.policy": "delete"}},
			kafka.NewTopic{Name: repartition, Partitions: 5, Replication: 1})
		if err != nil {
			t.Fatal(err)
		}
		e.start(e.wordCount(), e.config()).fails(changelog, "cleanup.policy=delete", "compact", repartition, "has 5 partitions", "needs 2")
	})
}

// Settings under which the broker would throw away what is still needed are refused, also when
// the right policy is among them.
func TestInternalTopicForgets(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		for name, c := range map[string]struct {
			topic   string
			configs map[string]string
			words   []string
		}{
			"changelog compacted and deleted":   {"-counts-changelog", map[string]string{"cleanup.policy": "compact,delete"}, []string{"cleanup.policy=compact,delete", "must be compact"}},
			"repartition compacted and deleted": {"-counts-repartition", map[string]string{"cleanup.policy": "compact,delete"}, []string{"must be delete"}},
			"repartition with a retention time": {"-counts-repartition", map[string]string{"retention.ms": "60000"}, []string{"retention.ms=60000", "must be -1"}},
			"repartition with a retention size": {"-counts-repartition", map[string]string{"retention.ms": "-1", "retention.bytes": "1000000"}, []string{"retention.bytes=1000000", "must be -1"}},
		} {
			t.Run(name, func(t *testing.T) {
				e := newEnv(t, e.b, e.client)
				if err := e.admin.CreateTopics(e.ctx(), kafka.NewTopic{Name: e.app + c.topic, Partitions: 2, Replication: 1, Configs: c.configs}); err != nil {
					t.Fatal(err)
				}
				e.start(e.wordCount(), e.config()).fails(append(c.words, e.app+c.topic, "would be deleted")...)
			})
		}
	})
}

func TestStateDirNotWritable(t *testing.T) {
	b := testbroker.Kfake(t)
	e := newEnv(t, b, clients[0])
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := e.config()
	cfg.StateDir = file
	e.start(e.wordCount(), cfg).fails(file)
}

func TestSecondProcessOnStateDir(t *testing.T) {
	b := testbroker.Kfake(t)
	e := newEnv(t, b, clients[0])
	first := e.start(e.wordCount(), e.config())
	first.catchUp()
	second, err := streams.New(e.wordCount(), e.config())
	if err != nil {
		t.Fatal(err)
	}
	contains(t, second.Run(context.Background()), filepath.Join(e.dir, e.app), "locked by process")
	first.close()
}

// one builds a topology of one processor between the input and the output.
func (e *env) one(p func() processor.Processor[string, string, string, string], stores ...processor.StoreDef) *streams.Topology {
	e.t.Helper()
	t := processor.NewTopology()
	processor.AddSource(t, "source", serde.String, serde.String, e.in)
	processor.AddProcessor(t, "work", p, []string{"source"}, stores...)
	processor.AddSink(t, "sink", e.out, serde.String, serde.String, "work")
	if err := t.Build(); err != nil {
		e.t.Fatal(err)
	}
	return t
}

type work = processor.Func[string, string, string, string]

func each(f work) func() processor.Processor[string, string, string, string] {
	return func() processor.Processor[string, string, string, string] { return f }
}

func TestRecordThatCannotBeDecoded(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topology := processor.NewTopology()
		processor.AddSource(topology, "source", serde.String, serde.Int64, e.in)
		processor.AddSink(topology, "sink", e.out, serde.String, serde.Int64, "source")
		e.produceRecords(kafka.Record{Topic: e.in, Partition: 1, Timestamp: 1000, Value: make([]byte, 8)}, kafka.Record{Topic: e.in, Partition: 1, Timestamp: 1000, Value: []byte("three")})
		e.start(topology, e.config()).fails("task 0_1", e.in+"-1@1", "source", "value", "int64")
	})
}

func TestPanicInUserCode(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		e.produceRecords(kafka.Record{Topic: e.in, Timestamp: 1000, Value: []byte("fine")}, kafka.Record{Topic: e.in, Timestamp: 1000, Value: []byte("boom")})
		app := e.start(e.one(each(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
			if r.Value == "boom" {
				panic("user code")
			}
			return ctx.Forward(r)
		})), e.config())
		app.fails("task 0_0", e.in+"-0@1", "node work", "panic: user code", "badinput_test.go")
	})
}

// A panic anywhere in user code fails the application and not the process, and lets the others
// close.
func TestPanicOutsideOfProcess(t *testing.T) {
	b := testbroker.Kfake(t)
	t.Run("timestamp extractor", func(t *testing.T) {
		e := newEnv(t, b, clients[0])
		e.produce("x")
		cfg := e.config()
		cfg.TimestampExtractor = func(*kafka.Record, time.Time) (time.Time, error) { panic("user code") }
		e.start(e.wordCount(), cfg).fails("task 0_0", e.in+"-0@0", "extract timestamp: panic: user code", "badinput_test.go")
	})
	t.Run("punctuation", func(t *testing.T) {
		e := newEnv(t, b, clients[0])
		p := panics{init: func(ctx processor.Context[string, string]) {
			ctx.Schedule(time.Millisecond, processor.WallClockTime, func(time.Time) error { panic("user code") })
		}}
		e.start(e.one(func() processor.Processor[string, string, string, string] { return p }), e.config()).fails("task 0_", "punctuate", "node work", "panic: user code", "badinput_test.go")
	})
	t.Run("init and close", func(t *testing.T) {
		e := newEnv(t, b, clients[0])
		p := panics{init: func(processor.Context[string, string]) { panic("user code") }}
		e.start(e.one(func() processor.Processor[string, string, string, string] { return p }), e.config()).fails("task 0_", "init processor work", "panic: user code", "panic: in close", "badinput_test.go")
	})
	t.Run("close", func(t *testing.T) {
		e := newEnv(t, b, clients[0])
		p := panics{init: func(processor.Context[string, string]) {}}
		app := e.start(e.one(func() processor.Processor[string, string, string, string] { return p }), e.config())
		app.catchUp()
		contains(t, app.Close(e.ctx()), "close processor work", "panic: in close")
	})
}

type panics struct {
	work
	init func(ctx processor.Context[string, string])
}

func (p panics) Init(ctx processor.Context[string, string]) error {
	p.init(ctx)
	return nil
}

func (panics) Close() error { panic("in close") }

func TestErrorInUserCode(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		cause := errors.New("user error")
		e.produce("x")
		err := e.start(e.one(each(func(processor.Context[string, string], processor.Record[string, string]) error { return cause })), e.config()).failure()
		contains(t, err, "task 0_0", e.in+"-0@0", "node work", "user error")
		if !errors.Is(err, cause) {
			t.Errorf("the cause is not in %v", err)
		}
	})
}

func TestStoreNotConnected(t *testing.T) {
	b := testbroker.Kfake(t)
	e := newEnv(t, b, clients[0])
	seen := processor.KeyValue("seen", serde.String, serde.Int64)
	e.produce("x")
	err := e.start(e.one(each(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
		return seen.In(ctx).Put(r.Value, 1)
	})), e.config()).failure()
	contains(t, err, "store seen is not connected to processor work", e.in+"-0@0")
	if !errors.Is(err, processor.ErrNotConnected) {
		t.Errorf("not ErrNotConnected: %v", err)
	}
}

func TestNegativeTimestamp(t *testing.T) {
	b := testbroker.Kfake(t)
	t.Run("fails by default", func(t *testing.T) {
		e := newEnv(t, b, clients[0])
		e.produceRecords(kafka.Record{Topic: e.in, Timestamp: -5, Value: []byte("x")})
		e.start(e.wordCount(), e.config()).fails("task 0_0", e.in+"-0@0", "negative timestamp -5 ms", "TimestampExtractor")
	})
	t.Run("dropped by an extractor", func(t *testing.T) {
		e := newEnv(t, b, clients[0])
		e.produceRecords(kafka.Record{Topic: e.in, Timestamp: -5, Value: []byte("x")}, kafka.Record{Topic: e.in, Timestamp: 5, Value: []byte("y")})
		cfg := e.config()
		cfg.TimestampExtractor = func(r *kafka.Record, _ time.Time) (time.Time, error) { return time.UnixMilli(r.Timestamp), nil }
		app := e.start(e.wordCount(), cfg)
		app.catchUp()
		var dropped int64
		for _, s := range app.Status().Workers[0].Tasks {
			dropped += s.Dropped
		}
		if dropped != 1 {
			t.Errorf("%d dropped", dropped)
		}
		if got, _ := e.counts(e.out); len(got) != 1 || got["y"] != 1 {
			t.Errorf("counts %v", got)
		}
		app.close()
	})
}

// Records that were deleted before they were processed are a loss that somebody has to know of, and can accept.
func TestInputRecordsAreGone(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		e.produceRecords(kafka.Record{Topic: e.in, Timestamp: 1000, Value: []byte("a")})
		app := e.start(e.wordCount(), e.config())
		app.catchUp()
		app.close()
		for range 4 {
			e.produceRecords(kafka.Record{Topic: e.in, Timestamp: 1000, Value: []byte("b")})
		}
		if err := e.admin.DeleteRecords(e.ctx(), map[kafka.TopicPartition]int64{{Topic: e.in, Partition: 0}: 4}); err != nil {
			t.Fatal(err)
		}
		e.start(e.wordCount(), e.config()).fails("task 0_0", e.in+"-0", "3 records are gone", "offset is 1", "starts at 4", "choose accept-reset")
		cfg := e.config()
		cfg.OnConflict = streams.UseStore
		e.start(e.wordCount(), cfg).fails("3 records are gone", "use-store is not possible", "choose accept-reset")
		cfg.OnConflict = streams.AcceptReset
		app = e.start(e.wordCount(), cfg)
		app.catchUp()
		app.close()
		app = e.start(e.wordCount(), e.config()) // that was all
		app.catchUp()
		app.close()
		if last, _ := e.counts(e.out); last["a"] != 1 || last["b"] != 1 {
			t.Errorf("counts %v", last)
		}
	})
}

func TestChangelogValueTooLarge(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		for _, g := range guaranteesFor(t, e.client) {
			t.Run(g.String(), func(t *testing.T) {
				e := newEnv(t, e.b, e.client)
				big := processor.KeyValue("big", serde.String, serde.String)
				e.produce("x")
				cfg := e.config()
				cfg.Guarantee = g
				e.start(e.one(each(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
					return big.In(ctx).Put("key", strings.Repeat("x", 3<<20))
				}), big), cfg).fails(e.app+"-big-changelog", "larg")
			})
		}
	})
}
