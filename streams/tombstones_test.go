package streams_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// A key is deleted while another disk has it, and its tombstone is compacted away; then the old disk
// comes back. With tombstones kept for longer than that took, it would be restored by them; here they are
// not, and the store begins anew. In no case does the key come back.
func TestDeletedKeysStayDeleted(t *testing.T) {
	for _, c := range clients {
		for name, kept := range map[string]string{"kept": "86400000", "gone": "1"} {
			t.Run(c.Name()+"/"+name, func(t *testing.T) {
				t.Parallel()
				b := testbroker.Kfake(t)
				e := newEnv(t, b, c)
				changelog := kafka.NewTopic{Name: e.app + "-seen-changelog", Partitions: 2, Replication: 1, Configs: map[string]string{
					"cleanup.policy": "compact", "delete.retention.ms": kept, "message.timestamp.type": "CreateTime"}}
				if err := e.admin.CreateTopics(e.ctx(), changelog); err != nil {
					t.Fatal(err)
				}
				keys := make(chan []string, 1)
				topology := e.seenKeys(keys)
				state, old := filepath.Join(e.dir, e.app), filepath.Join(t.TempDir(), "old")
				run := func(values ...string) []string {
					t.Helper()
					app := e.start(topology, e.config())
					var records []kafka.Record
					for _, v := range append(values, "list") {
						records = append(records, kafka.Record{Topic: e.in, Timestamp: time.Now().UnixMilli(), Value: []byte(v)})
					}
					e.produceRecords(records...)
					app.catchUp()
					app.close()
					return <-keys
				}
				run("put a", "put b")
				must(t, os.CopyFS(old, os.DirFS(state)))
				run("delete a", "put c", "put d")
				if kept == "1" {
					<-time.After(5 * time.Millisecond) // the tombstone gets too old
					b.Cluster.Compact()
				}
				dirs, err := filepath.Glob(filepath.Join(state, "*_*"))
				must(t, err)
				for _, dir := range dirs {
					must(t, os.RemoveAll(dir))
					must(t, os.CopyFS(dir, os.DirFS(filepath.Join(old, filepath.Base(dir)))))
				}
				if got, want := run(), []string{"b", "c", "d"}; !slices.Equal(got, want) {
					t.Errorf("keys %v, want %v", got, want)
				}
			})
		}
	}
}

// seenKeys keeps keys, and tells them all.
func (e *env) seenKeys(keys chan []string) *streams.Topology {
	e.t.Helper()
	seen := processor.KeyValue("seen", serde.String, serde.String)
	b := streams.NewBuilder()
	both := streams.With(serde.String, serde.String)
	process := func() processor.Processor[string, string, string, string] {
		return processor.Func[string, string, string, string](func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
			s := seen.In(ctx)
			if key, ok := strings.CutPrefix(r.Value, "put "); ok {
				return s.Put(key, "x")
			}
			if key, ok := strings.CutPrefix(r.Value, "delete "); ok {
				_, _, err := s.Delete(key)
				return err
			}
			var all []string
			var errs error
			for x, err := range s.All() {
				all, errs = append(all, x.Key), errors.Join(errs, err)
			}
			keys <- all
			return errs
		})
	}
	streams.Process(streams.Stream(b, e.in, both), process, both, seen).To(e.out)
	topology, err := b.Build()
	if err != nil {
		e.t.Fatal(err)
	}
	return topology
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
