package streams_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/streams"
)

// fencing is a client whose memberships end when a test says so, as librdkafka's do after an answer that was lost: another
// member is said to have taken the instance id.
type fencing struct {
	kafka.Client
	now     *atomic.Pointer[fencedMembership]
	members *atomic.Int32
}

type fencedMembership struct {
	kafka.Membership
	fenced  atomic.Bool
	changed func()
}

func (c fencing) NewMembership(s kafka.Settings, cfg kafka.MembershipConfig) (kafka.Membership, error) {
	m, err := c.Client.NewMembership(s, cfg)
	if err != nil {
		return nil, err
	}
	x := &fencedMembership{Membership: m, changed: cfg.Changed}
	c.now.Store(x)
	c.members.Add(1)
	return x, nil
}

func (m *fencedMembership) State() kafka.MembershipState {
	s := m.Membership.State()
	if m.fenced.Load() {
		return kafka.MembershipState{Member: kafka.Member{Group: s.Member.Group, InstanceID: s.Member.InstanceID},
			Err: &kafka.Error{Class: kafka.ClassInstanceFenced, Op: "be a member of", On: s.Member.Group, Err: errors.New("fenced")}}
	}
	return s
}

func (m *fencedMembership) end() { m.fenced.Store(true); m.changed() }

// A member that is fenced is replaced: a client may be fenced by a request of its own that was late. Who is fenced again and again
// has met another process with its instance id, and the application ends and says so.
func TestFencedMemberJoinsAgain(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	client := fencing{e.client, &atomic.Pointer[fencedMembership]{}, &atomic.Int32{}}
	cfg := e.config()
	cfg.Guarantee, cfg.Client, cfg.InstanceID = streams.ExactlyOnce, client, "the-one"
	app := e.start(e.wordCount(), cfg)
	in, want := lines(50)
	e.produce(in...)
	app.catchUp()
	const times = 4
	for i := range int32(times) {
		client.now.Load().end()
		kafkatest.Eventually(t, time.Minute, "there is a new member", func() bool { return client.members.Load() == i+2 })
		e.produce(in...)
		app.catchUp()
	}
	for w := range want {
		want[w] *= 1 + times
	}
	e.checkCounts(streams.ExactlyOnce, want)
	client.now.Load().end()
	err := app.failure()
	contains(t, err, "the-one", e.dir)
	if !kafka.IsClass(err, kafka.ClassInstanceFenced) {
		t.Errorf("%v", err)
	}
	if n := client.members.Load(); n != 1+times {
		t.Errorf("%d members", n)
	}
}

// An application that is told to stop takes no place again: another process has its instance id, its successor perhaps.
func TestFencedMemberOfAStoppingApplication(t *testing.T) {
	e := newEnv(t, testbroker.Kfake(t), clients[0])
	client := fencing{e.client, &atomic.Pointer[fencedMembership]{}, &atomic.Int32{}}
	inside, goOn := make(chan struct{}), make(chan struct{})
	cfg := e.config()
	cfg.Client, cfg.InstanceID = client, "the-one"
	app := e.start(e.one(each(func(processor.Context[string, string], processor.Record[string, string]) error {
		close(inside)
		<-goOn
		return nil
	})), cfg)
	e.produce("v")
	<-inside
	client.now.Load().end()
	closed := make(chan error)
	go func() { closed <- app.Close(e.ctx()) }()
	kafkatest.Eventually(t, time.Minute, "it is being closed", func() bool { return app.State() == streams.Closing })
	close(goOn)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if n := client.members.Load(); n != 1 {
		t.Errorf("%d members", n)
	}
}
