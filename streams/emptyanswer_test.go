package streams_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/streams"
)

// forgetting is a client whose group has no offsets, for so many questions: a coordinator in trouble.
type forgetting struct {
	kafka.Client
	n *atomic.Int32
}

type forgettingAdmin struct {
	kafka.Admin
	n *atomic.Int32
}

func (c forgetting) NewAdmin(s kafka.Settings) (kafka.Admin, error) {
	a, err := c.Client.NewAdmin(s)
	return forgettingAdmin{a, c.n}, err
}

func (a forgettingAdmin) CommittedOffsets(ctx context.Context, g string, tps ...kafka.TopicPartition) (map[kafka.TopicPartition]kafka.CommittedOffset, error) {
	if a.n.Add(-1) >= 0 {
		return map[kafka.TopicPartition]kafka.CommittedOffset{}, nil
	}
	return a.Admin.CommittedOffsets(ctx, g, tps...)
}

// An answer without offsets is not believed of a group that is not new: nothing is processed twice, and nobody stops.
func TestEmptyAnswerOfTheCoordinator(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		stateless := func(e *env) *streams.Topology {
			return e.one(each(func(ctx processor.Context[string, string], r processor.Record[string, string]) error {
				return ctx.Forward(r)
			}))
		}
		for name, topology := range map[string]func(*env) *streams.Topology{"stateless": stateless, "counts": (*env).wordCount} {
			for disk, lost := range map[string]bool{"disk here": false, "disk lost": true} {
				t.Run(name+"/"+disk, func(t *testing.T) {
					t.Parallel()
					e := newEnv(t, e.b, e.client)
					cfg := e.config()
					cfg.Guarantee = streams.ExactlyOnce
					run := func(in ...string) {
						t.Helper()
						e.produce(in...)
						app := e.start(topology(e), cfg)
						app.catchUp()
						app.close()
					}
					run("a", "b", "c", "d")
					if lost {
						e.loseDisk()
					}
					n := &atomic.Int32{}
					n.Store(2)
					cfg.Client = forgetting{e.client, n}
					run("e", "a")
					if n.Load() >= 0 {
						t.Fatal("the coordinator was not asked")
					}
					if name == "counts" {
						last, _ := e.counts(e.out)
						if diff := cmp.Diff(map[string]int64{"a": 2, "b": 1, "c": 1, "d": 1, "e": 1}, last); diff != "" {
							t.Errorf("counts: -want +got\n%s", diff)
						}
					} else if got := len(e.read(e.out)); got != 6 {
						t.Errorf("%d outputs of 6 records", got)
					}
				})
			}
		}
	})
}
