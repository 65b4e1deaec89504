package streams_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/streams"
)

// What happens to the topics under a running application is an error that names the topic, and
// never silence.
func TestTopicsChangeUnderRunningApplication(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(e *env)
		words  []string
	}{
		"input grown": {func(e *env) { e.grow(e.in) }, []string{"has 4 partitions", "had 2"}},
		"input created again": {func(e *env) {
			e.remove(e.in)
			e.create(e.in, 2)
		}, nil},
		"input deleted": {func(e *env) { e.remove(e.in) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, e *env) {
				cfg := e.config()
				cfg.TopicInterval = 50 * time.Millisecond
				app := e.start(e.wordCount(), cfg)
				in, _ := lines(20)
				e.produce(in...)
				app.catchUp()
				c.change(e)
				contains(t, app.failure(), append(c.words, e.in)...)
			})
		})
	}
}

// An output that is given more partitions stops nobody.
func TestOutputGrows(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		cfg := e.config()
		cfg.TopicInterval = 20 * time.Millisecond
		app := e.start(e.wordCount(), cfg)
		in, want := lines(100)
		e.produce(in...)
		app.catchUp()
		e.grow(e.out)
		looks := time.After(200 * time.Millisecond)
		<-looks
		e.produce(in...)
		app.catchUp()
		app.close()
		for w := range want {
			want[w] *= 2
		}
		e.checkCounts(streams.ExactlyOnce, want) // nobody crashed: nothing repeats
	})
}

// grow gives a topic four partitions.
func (e *env) grow(topic string) {
	e.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(e.b.Addrs...))
	if err != nil {
		e.t.Fatal(err)
	}
	defer cl.Close()
	r, err := kadm.NewClient(cl).UpdatePartitions(e.ctx(), 4, topic)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) remove(topic string) {
	e.t.Helper()
	testbroker.RemoveTopic(e.t, e.admin, topic)
}
