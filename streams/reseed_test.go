package streams_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/streams"
	"github.com/tidemark-streams/tidemark/task"
)

// loseDisk removes what the application has on its disk of all tasks.
func (e *env) loseDisk() {
	e.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(e.dir, e.app, "*_[0-9]"))
	must(e.t, err)
	if len(dirs) == 0 {
		e.t.Fatal("there is no task directory")
	}
	for _, dir := range dirs {
		must(e.t, os.RemoveAll(dir))
	}
}

// repairs gives what the tasks did about changelogs that did not fit.
func (r *running) repairs() (all []task.Repair) {
	for _, w := range r.Status().Workers {
		for _, s := range w.Tasks {
			all = append(all, s.Repaired...)
		}
	}
	return all
}

// loseChangelog are the ways in which a changelog loses what it held, while nobody runs.
var loseChangelog = map[string]func(e *env, topic string){
	"deleted": func(e *env, topic string) { e.remove(topic) },
	"emptied": func(e *env, topic string) {
		tps := []kafka.TopicPartition{{Topic: topic}, {Topic: topic, Partition: 1}}
		ends, err := e.admin.ListOffsets(e.ctx(), kafka.HighWatermark, tps...)
		must(e.t, err)
		e.setPolicy(topic, "compact,delete")                                                   // of a compacted topic Kafka deletes nothing
		kafkatest.Eventually(e.t, time.Minute, "the broker deletes its records", func() bool { // once it has heard of the policy
			err := e.admin.DeleteRecords(e.ctx(), ends)
			// POLICY_VIOLATION, or "Policy violation": the clients' words differ.
			if err != nil && !strings.Contains(strings.ReplaceAll(strings.ToLower(err.Error()), "_", " "), "policy violation") {
				e.t.Fatal(err)
			}
			return err == nil
		})
		e.setPolicy(topic, "compact")
	},
}

func (e *env) setPolicy(topic, policy string) {
	e.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(e.b.Addrs...))
	must(e.t, err)
	defer cl.Close()
	got, err := kadm.NewClient(cl).AlterTopicConfigs(e.ctx(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: &policy}}, topic)
	must(e.t, err)
	for _, r := range got {
		must(e.t, r.Err)
	}
	kafkatest.Eventually(e.t, 90*time.Second, "the broker shows the policy", func() bool { // it goes on showing the old one for a moment
		shown, err := e.admin.TopicConfigs(e.ctx(), topic)
		return err == nil && shown["cleanup.policy"] == policy
	})
}

// countOnce gives an application lines to count, from its start to its end, and tells what it had to repair.
func (e *env) countOnce(cfg streams.Config, lines []string) []task.Repair {
	e.t.Helper()
	e.produce(lines...)
	app := e.start(e.wordCount(), cfg)
	app.catchUp()
	repairs := app.repairs()
	app.close()
	return repairs
}

// A changelog that lost what it held is written again by whoever has the store: a disk that is lost
// after that comes back whole.
func TestLostChangelogIsWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, lose := range loseChangelog {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, e *env) {
				for _, g := range guaranteesFor(t, e.client) {
					t.Run(g.String(), func(t *testing.T) {
						t.Parallel()
						e := newEnv(t, e.b, e.client)
						cfg := e.config()
						cfg.Guarantee, cfg.Workers = g, 2
						in, want := lines(200)
						run := func(wantRepairs bool) {
							t.Helper()
							if got := e.countOnce(cfg, in); (len(got) > 0) != wantRepairs {
								t.Errorf("repairs %+v, wanted: %v", got, wantRepairs)
							}
						}
						run(false)
						lose(e, e.app+"-counts-changelog")
						run(true)
						run(false)
						e.loseDisk()
						run(false)
						for w := range want {
							want[w] *= 4
						}
						got, _ := e.counts(e.out)
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("counts: -want +got\n%s", diff)
						}
					})
				}
			})
		})
	}
}

// Without the disk, too, nobody counts on from nothing.
func TestLostChangelogAndDisk(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		in, _ := lines(20)
		e.produce(in...)
		app := e.start(e.wordCount(), e.config())
		app.catchUp()
		app.close()
		e.remove(e.app + "-counts-changelog")
		e.loseDisk()
		app = e.start(e.wordCount(), e.config())
		app.fails(task.ErrTopicChanged.Error(), "store counts", "host that had the task last")
	})
}

// A store that is behind the group, and whose offset its changelog does not have any more, is restored from what
// there is. What it held is not thrown away: a copy is kept, once.
func TestStoreOutsideItsChangelogIsKept(t *testing.T) {
	t.Parallel()
	b := testbroker.Kfake(t)
	for _, c := range clients {
		t.Run(c.Name(), func(t *testing.T) {
			e := newEnv(t, b, c)
			state, old := filepath.Join(e.dir, e.app), filepath.Join(t.TempDir(), "old")
			in, want := lines(100)
			run := func() []task.Repair { return e.countOnce(e.config(), in) }
			run()
			must(t, os.CopyFS(old, os.DirFS(state)))
			for range 2 {
				run()
				loseChangelog["emptied"](e, e.app+"-counts-changelog")
				e.loseDisk()
				dirs, err := filepath.Glob(filepath.Join(old, "1_*"))
				must(t, err)
				for _, dir := range dirs {
					must(t, os.CopyFS(filepath.Join(state, filepath.Base(dir)), os.DirFS(dir)))
				}
				repairs := run()
				if len(repairs) != 2 || !strings.Contains(repairs[0].Reason, "does not fit") {
					t.Errorf("repairs %+v", repairs)
				}
			}
			for p := range 2 {
				copies, err := filepath.Glob(filepath.Join(state, fmt.Sprintf("1_%d.kept-*", p)))
				must(t, err)
				if len(copies) != 1 {
					t.Fatalf("copies %q", copies)
				}
				s, err := statestore.Open(copies[0], statestore.Options{Logger: discard})
				must(t, err)
				states, err := s.Stores()
				must(t, err)
				must(t, s.Register(states[0].Recorded))
				kv, err := s.KeyValue("counts")
				must(t, err)
				for x, err := range kv.All() {
					must(t, err)
					n, err := serde.Int64.Decode(x.Value)
					must(t, err)
					if n != want[string(x.Key)] {
						t.Errorf("the copy has %s = %d, want %d", x.Key, n, want[string(x.Key)])
					}
					delete(want, string(x.Key))
				}
				must(t, s.Close())
			}
			if len(want) > 0 {
				t.Errorf("the copies lack %v", want)
			}
		})
	}
}
