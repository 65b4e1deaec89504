package streams

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// What is not built yet has to fit into the shapes that are. These tests build the simplest
// form of a windowed count out of what there is, and run it beside a join of a stream with a
// table, in one topology with several value types.

func TestShapeOfAJoinAndAWindowedCount(t *testing.T) {
	b := NewBuilder()
	words := Stream(b, "words", With(serde.String, serde.String))

	perHour := countWindows(words.GroupByKey(), tumbling(time.Hour), Materialized{Name: "per-hour"})
	perHour.ToStream().To("per-hour")

	users := Table(b, "users", With(serde.String, serde.Int64), Materialized{Name: "users"})
	JoinTable(words, users, func(k, w string, age int64) string {
		return k + " of " + string(rune('0'+age)) + " says " + w
	}, serde.String).To("joined")

	f := newFlow(t, b)
	if n := len(f.topology.Subtopologies()); n != 1 {
		t.Fatalf("%d sub-topologies: the join's store connects stream and table", n)
	}
	hour := time.Hour.Milliseconds()
	f.send("words", "ann", "hi", 5) // no row yet: an inner join gives nothing
	f.expect("per-hour ann@0=1 @5")
	f.send("users", "ann", "\x00\x00\x00\x00\x00\x00\x00\x07", 6)
	f.send("words", "ann", "ho", hour+1)
	f.expect("per-hour ann@1=1 @3600001", "joined ann=ann of 7 says ho @3600001")
	f.send("users", "ann", "∅", 7)
	f.send("words", "ann", "oh", 9)
	f.send("words", "∅", "who", 9)
	f.expect("per-hour ann@0=2 @9")
}

// windowed is a key of a window.
type windowed[K any] struct {
	Key   K
	Start time.Time
}

type tumbling time.Duration

// windowedSerde writes the key, and the number of the hour that it begins in (for show).
type windowedSerde[K any] struct{ key serde.Serde[K] }

func (s windowedSerde[K]) Name() string { return "windowed:" + s.key.Name() }

func (s windowedSerde[K]) Append(dst []byte, w windowed[K]) ([]byte, error) {
	dst, err := s.key.Append(dst, w.Key)
	return append(dst, '@', byte('0'+w.Start.UnixMilli()/time.Hour.Milliseconds())), err
}

func (s windowedSerde[K]) Decode(b []byte) (w windowed[K], err error) {
	hour := time.Duration(b[len(b)-1]-'0') * time.Hour
	w.Start = time.UnixMilli(hour.Milliseconds())
	w.Key, err = s.key.Decode(b[:len(b)-2])
	return w, err
}

// countWindows leads from K to windowed[K].
func countWindows[K, V any](g *KGroupedStream[K, V], size tumbling, m Materialized) *KTable[windowed[K], int64] {
	key := windowedSerde[K]{g.key}
	store := processor.TimestampedKeyValue[windowed[K], int64](m.Name, key, serde.Int64)
	newCount := func() processor.Func[K, V, windowed[K], change[int64]] {
		return func(ctx processor.Context[windowed[K], change[int64]], r processor.Record[K, V]) error {
			if !r.HasKey() {
				processor.Drop(ctx, nullKey)
				return nil
			}
			ms := time.Duration(size).Milliseconds()
			w := windowed[K]{r.Key, time.UnixMilli(r.Timestamp.UnixMilli() / ms * ms)}
			n, _, _, err := store.In(ctx).Get(w)
			if err != nil {
				return err
			}
			if err := store.In(ctx).Put(w, n+1, r.Timestamp); err != nil {
				return err
			}
			return ctx.Forward(processor.WithValue(processor.WithKey(r, w), change[int64]{new: n + 1, hasNew: true}))
		}
	}
	node := hangProcessor(g.b, g.b.generated("KSTREAM-AGGREGATE-"), newCount, []*graphNode{g.partitioned(m.Name)}, store)
	return &KTable[windowed[K], int64]{b: g.b, node: node, key: key, value: serde.Int64}
}

// TestWhyWindowsAreFunctions: an operator that wraps a type in another cannot be a method. If
// Go comes to allow it, this fails, and the decision may be looked at again.
func TestWhyWindowsAreFunctions(t *testing.T) {
	const header = `package p
type KStream[K, V any] struct{ k K; v V }
type KTable[K, V any] struct{ k K; v V }
type Windowed[K any] struct{ key K }
func (t *KTable[K, V]) ToStream() *KStream[K, V] { return nil }
`
	for source, want := range map[string]string{
		`func (s *KStream[K, V]) CountWindows() *KTable[Windowed[K], int64] { return nil }`:           "instantiation cycle",
		`func (s *KStream[K, V]) MapValues[V2 any](f func(V) V2) *KStream[K, V2] { return nil }`:      "type parameter",
		`func CountWindows[K, V any](s *KStream[K, V]) *KTable[Windowed[K], int64] { return nil }`:    "",
		`func MapValues[K, V, V2 any](s *KStream[K, V], f func(V) V2) *KStream[K, V2] { return nil }`: "",
		`func (s *KStream[K, V]) Count() *KTable[K, int64] { return nil }`:                            "",
	} {
		err := check(header + source)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\ngives %v, want %q", source, err, want)
		}
	}
}

func check(source string) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	_, err = (&types.Config{}).Check("p", fset, []*ast.File{file}, nil)
	return err
}

// embeddedTask is a task of the embedded form: the user's own loop, with the same handles.
type embeddedTask struct{ stores *processor.Stores }

func (t *embeddedTask) Stores() *processor.Stores { return t.stores }

func TestShapeOfTheEmbeddedForm(t *testing.T) {
	b := NewBuilder() // only for its store
	Process(Stream(b, "in", texts), newDedupe, texts, seen)
	stores, err := processor.NewStores("the host", newFlow(t, b).stores[0], seen)
	if err != nil {
		t.Fatal(err)
	}
	process := func(key string, ms int64, f func(t *embeddedTask) error) {
		stores.SetTimestamp(time.UnixMilli(ms))
		if err := f(&embeddedTask{stores}); err != nil {
			t.Error(key, err)
		}
	}
	duplicates := 0
	for i, key := range []string{"a", "b", "a"} {
		process(key, int64(i), func(t *embeddedTask) error {
			s := seen.In(t) // the same handle as in a processor
			if _, dup, err := s.Get(key); dup || err != nil {
				duplicates++
				return err
			}
			return s.Put(key, int64(i))
		})
	}
	if duplicates != 1 {
		t.Errorf("%d duplicates", duplicates)
	}
}
