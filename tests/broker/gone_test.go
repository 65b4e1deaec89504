package broker

import (
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/streams"
)

// The broker is not there when the application starts: it waits for StartTimeout, and then
// says which address it tried. One that comes in time is enough.
func TestBrokerGoneAtStart(t *testing.T) {
	t.Parallel()
	n := start(t)
	var late []*app
	for _, c := range clients {
		a := newApp(t, n.addr, c, streams.ExactlyOnce)
		a.createTopics()
		late = append(late, a)
	}
	n.stop()
	for _, a := range late {
		cfg := a.config()
		cfg.StartTimeout = 2 * time.Second
		gone := newApp(t, n.addr, a.client, a.guarantee)
		gone.run(cfg)
		_ = gone.fails(kafka.ClassUnreachable, n.addr)
		if took := time.Since(gone.began); took > 15*time.Second {
			t.Errorf("%s: it took %v", a.client.Name(), took)
		}
	}
	for _, a := range late {
		cfg := a.config()
		cfg.StartTimeout = patience
		a.run(cfg)
	}
	n.again()
	cl, _ := admin(t, n.addr)
	for _, a := range late {
		want := map[string]int64{}
		if err := cl.ProduceSync(bounded(t), a.lines(100, want)...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		a.catchUp()
		if err := a.Close(bounded(t)); err != nil {
			t.Error(err)
		}
		a.checkCounts(want)
	}
}
