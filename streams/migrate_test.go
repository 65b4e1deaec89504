package streams_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/streams"
)

// length is a value in its second version: the text, and how long it is.
type length struct {
	Text string
	Len  int
}

var (
	lengths       = serde.JSON[length]()
	errUnmeasured = errors.New("too heavy")
	textsVersion1 = processor.Session("texts", serde.String, serde.Bytes, kept).SchemaVersion(1)
	textsVersion2 = processor.Session("texts", serde.String, serde.Bytes, kept).SchemaVersion(2).Migrate(func(version uint32, key string, old []byte) ([]byte, error) {
		if string(old) == "heavy" {
			return nil, errUnmeasured
		}
		return lengths.Append(nil, length{fmt.Sprint(key, version, string(old)), len(old)})
	})
)

// onTexts keeps each record as a session in a store of texts, and puts out all of them.
func (e *env) onTexts(texts processor.SessionHandle[string, []byte], encode func(string) []byte) *processor.Topology {
	t := processor.NewTopology()
	processor.AddSource(t, "source", serde.String, serde.String, e.in)
	processor.AddProcessor(t, "keep", func() processor.Func[string, string, string, string] {
		return func(ctx textContext, r textRecord) error {
			s := texts.In(ctx)
			if r.Value != "dump" {
				return s.Put(r.Key, encode(r.Value), r.Timestamp, r.Timestamp)
			}
			for x, err := range s.All() {
				if err != nil {
					return err
				}
				if err := ctx.Forward(processor.WithValue(r, string(x.Value))); err != nil {
					return err
				}
			}
			return nil
		}
	}, []string{"source"}, texts)
	processor.AddSink(t, "sink", e.out, serde.String, serde.String, "keep")
	return t
}

func (e *env) text(key, value string) kafka.Record {
	return kafka.Record{Topic: e.in, Partition: 0, Timestamp: ms(1_000_000).UnixMilli() + int64(len(key)), Key: []byte(key), Value: []byte(value)}
}

// A program whose values mean something else than before changes them when it finds them on the
// disk, and when they come from the changelog; those that it wrote itself it leaves alone.
func TestMigrate(t *testing.T) {
	b := testbroker.Kfake(t)
	for name, lose := range map[string]bool{"from the disk": false, "from the changelog": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, b, clients[0])
			cfg := e.config()
			cfg.InstanceID = "one"
			start := func(topology *streams.Topology) *running { return e.start(topology, cfg) }
			lost := func() {
				if lose {
					if err := os.RemoveAll(e.dir); err != nil {
						t.Fatal(err)
					}
				}
			}
			e.produceRecords(e.text("a", "x"), e.text("bb", "yy"))
			app := start(e.onTexts(textsVersion1, func(s string) []byte { return []byte(s) }))
			app.catchUp()
			app.close()

			lost()
			measured := func(s string) []byte { b, _ := lengths.Append(nil, length{s, len(s)}); return b }
			app = start(e.onTexts(textsVersion2, measured))
			e.produceRecords(e.text("ccc", "zzz"))
			app.catchUp()
			app.close()

			lost()
			app = start(e.onTexts(textsVersion2, measured))
			e.produceRecords(e.text("dump", "dump"))
			app.catchUp()
			app.close()
			var got []string
			for _, r := range e.read(e.out) {
				got = append(got, string(r.Value))
			}
			slices.Sort(got)
			if diff := cmp.Diff([]string{`{"Text":"a1x","Len":1}`, `{"Text":"bb1yy","Len":2}`, `{"Text":"zzz","Len":3}`}, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}

			// What was written by the newer program is not for the older one.
			lost()
			start(e.onTexts(textsVersion1, nil)).fails("store", "texts", "version 2", "run the newer program")
		})
	}
}

func TestMigrationFails(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	cfg := e.config()
	cfg.InstanceID = "one"
	e.produceRecords(e.text("a", "heavy"))
	app := e.start(e.onTexts(textsVersion1, func(s string) []byte { return []byte(s) }), cfg)
	app.catchUp()
	app.close()
	app = e.start(e.onTexts(textsVersion2, nil), cfg)
	err := app.failure()
	contains(t, err, "migrate store", "texts", "from schema version 1 to 2", "too heavy")
	if !errors.Is(err, errUnmeasured) {
		t.Errorf("the cause is lost: %v", err)
	}
}
