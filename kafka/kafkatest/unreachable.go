package kafkatest

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

var unreachableTests = []test{
	{"nobody listens", false, func(t *testing.T, s *suite) { unreachable(t, s, closedPort(t)) }},
	{"nobody answers", false, func(t *testing.T, s *suite) { unreachable(t, s, silentPort(t)) }},
	{"a broker that starts late", false, startsLate},
	{"a broker that hangs up for a while", false, hangsUp},
	{"no brokers are given", false, noBrokers},
}

// closedPort gives a loopback address that refuses connections.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// silentPort gives the address of a listener that accepts and never answers.
func silentPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	var conns []net.Conn
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		accepting.Wait()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return l.Addr().String()
}

// unreachable checks that no call of any part outlives its context by more than a moment
// (K4), and that what can say so says which broker did not answer. Each part is a test of
// its own, all at the same time, as they do nothing but wait.
func unreachable(t *testing.T, s *suite, addr string) {
	settings := s.broker.Settings()
	settings.Brokers = []string{addr}
	for name, test := range map[string]func(*testing.T, *suite, kafka.Settings){
		"admin": unreachableAdmin, "transactional": unreachableTransactional, "producer": unreachableProducer,
		"consumer": unreachableConsumer, "membership": unreachableMembership,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s, settings)
		})
	}
}

const unreachableLimit = 400 * time.Millisecond

// names fails unless a call ends in time with an error that names the broker.
func names(t *testing.T, settings kafka.Settings, name string, call func(ctx context.Context) error) {
	t.Helper()
	err := bounded(t, unreachableLimit, call)
	if err == nil {
		t.Fatalf("%s worked", name)
	}
	wantClass(t, err, kafka.ClassUnreachable)
	if !strings.Contains(err.Error(), settings.Brokers[0]) {
		t.Errorf("%s: the error does not name %s: %v", name, settings.Brokers[0], err)
	}
}

// ends fails unless a call ends in time, with whatever result.
func ends(t *testing.T, call func(ctx context.Context) error) {
	t.Helper()
	_ = bounded(t, unreachableLimit, call)
}

func unreachableAdmin(t *testing.T, s *suite, settings kafka.Settings) {
	a, err := s.client.NewAdmin(settings)
	noError(t, err)
	tp := kafka.TopicPartition{Topic: "t"}
	names(t, settings, "topics", func(ctx context.Context) error { _, err := a.Topics(ctx, "t"); return err })
	names(t, settings, "configs", func(ctx context.Context) error { _, err := a.TopicConfigs(ctx, "t"); return err })
	names(t, settings, "create", func(ctx context.Context) error {
		return a.CreateTopics(ctx, kafka.NewTopic{Name: "t", Partitions: 1, Replication: 1})
	})
	names(t, settings, "delete", func(ctx context.Context) error { return a.DeleteTopics(ctx, "t") })
	names(t, settings, "list", func(ctx context.Context) error { _, err := a.ListOffsets(ctx, kafka.Earliest, tp); return err })
	names(t, settings, "committed", func(ctx context.Context) error { _, err := a.CommittedOffsets(ctx, "g", tp); return err })
	names(t, settings, "group", func(ctx context.Context) error { _, err := a.DescribeGroup(ctx, "g"); return err })
	names(t, settings, "delete records", func(ctx context.Context) error {
		return a.DeleteRecords(ctx, map[kafka.TopicPartition]int64{tp: 1})
	})
	ends(t, a.Close)
}

func unreachableTransactional(t *testing.T, s *suite, settings kafka.Settings) {
	x, err := s.client.NewTransactional(settings, kafka.TransactionalConfig{ID: "x"})
	noError(t, err)
	names(t, settings, "init", x.Init)
	names(t, settings, "init again", x.Init)
	ends(t, x.Close)
}

func unreachableProducer(t *testing.T, s *suite, settings kafka.Settings) {
	p, err := s.client.NewProducer(settings, kafka.ProducerConfig{})
	noError(t, err)
	r := send(t, s, p, records("t", "v"))
	ends(t, p.Close)
	r.wait(t)
	wantClass(t, r.err(0), kafka.ClassUnreachable, kafka.ClassClosed, kafka.ClassTimeout)

	p, err = s.client.NewProducer(settings, kafka.ProducerConfig{DeliveryTimeout: time.Second})
	noError(t, err)
	r = send(t, s, p, records("t", "v"))
	r.wait(t) // by the delivery timeout
	wantClass(t, r.err(0), kafka.ClassUnreachable, kafka.ClassTimeout)
	ends(t, p.Close)
}

func unreachableConsumer(t *testing.T, s *suite, settings kafka.Settings) {
	c, err := s.client.NewConsumer(settings, kafka.ConsumerConfig{})
	noError(t, err)
	ends(t, func(ctx context.Context) error {
		return c.Assign(ctx, map[kafka.TopicPartition]int64{{Topic: "t"}: 0})
	})
	var poll kafka.Poll
	ends(t, func(ctx context.Context) error { return c.Poll(ctx, &poll) })
	ends(t, c.Close)
}

func unreachableMembership(t *testing.T, s *suite, settings kafka.Settings) {
	for _, leave := range []bool{false, true} {
		m, err := s.client.NewMembership(settings, kafka.MembershipConfig{Group: "g", Topic: "t", InstanceID: "i"})
		noError(t, err)
		if st := m.State(); st.Member.ID != "" || len(st.Holds) != 0 || st.Err != nil {
			t.Errorf("without a broker the membership is %+v", st)
		}
		if leave {
			ends(t, m.Leave)
		}
		ends(t, m.Close)
	}
}

// startsLate checks that calls wait for a broker as long as their context allows.
func startsLate(t *testing.T, s *suite) {
	addr := closedPort(t)
	_, port, err := net.SplitHostPort(addr)
	noError(t, err)
	n, err := strconv.Atoi(port)
	noError(t, err)
	settings := s.broker.Settings()
	settings.Brokers = []string{addr}
	a, err := s.client.NewAdmin(settings)
	noError(t, err)
	closing(t, a)
	x, err := s.client.NewTransactional(settings, kafka.TransactionalConfig{ID: "late"})
	noError(t, err)
	closing(t, x)
	ctx := s.ctx(t)
	done := make(chan error, 2)
	go func() { _, err := a.DescribeGroup(ctx, "g"); done <- err }()
	go func() { done <- x.Init(ctx) }()
	select {
	case err := <-done:
		t.Fatalf("a call ended before the broker was there: %v", err)
	case <-within(t, time.Second).Done():
	}
	Embedded(t, kfake.Ports(n))
	noError(t, <-done)
	noError(t, <-done)
}

// hangsUp checks that each part waits for a broker that accepts connections and closes them, as one behind a proxy does.
func hangsUp(t *testing.T, s *suite) {
	for name, use := range map[string]func(t *testing.T, s *suite, topic string, group kafka.MembershipConfig){
		"admin": func(t *testing.T, s *suite, topic string, _ kafka.MembershipConfig) {
			_, err := s.admin(t).Topics(s.ctx(t), topic)
			noError(t, err)
		},
		"transactional": func(t *testing.T, s *suite, _ string, _ kafka.MembershipConfig) {
			noError(t, s.uninitialised(t, "x").Init(s.ctx(t)))
		},
		"membership": func(t *testing.T, s *suite, _ string, group kafka.MembershipConfig) {
			holding(t, s.membership(t, group))
		},
		"producer": func(t *testing.T, s *suite, topic string, _ kafka.MembershipConfig) {
			r := newReports()
			noError(t, s.producer(t, kafka.ProducerConfig{}).Send(s.ctx(t), []kafka.Record{{Topic: topic, Timestamp: 1}}, r.one()))
			r.wait(t)
			noError(t, r.errs[0])
		},
		"consumer": func(t *testing.T, s *suite, topic string, _ kafka.MembershipConfig) {
			c := s.consumer(t, kafka.ConsumerConfig{})
			noError(t, c.Assign(s.ctx(t), map[kafka.TopicPartition]int64{{Topic: topic}: 0}))
			r := newReader(c)
			r.until(t, "its position is known", func() bool { _, known := r.next[kafka.TopicPartition{Topic: topic}]; return known })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := &suite{client: s.client, broker: Embedded(t)}
			group, topic := own.groupConfig(t), own.broker.CreateTopic(t, "in", 1, nil)
			writer := own.broker.raw(t)
			noError(t, writer.ProduceSync(own.ctx(t), &kgo.Record{Topic: topic}).FirstErr())
			own.broker.Network.HangUp()
			heal := time.AfterFunc(500*time.Millisecond, own.broker.Network.Heal)
			use(t, own, topic, group)
			if heal.Stop() {
				t.Error("it did not wait for the broker")
			}
		})
	}
}

func noBrokers(t *testing.T, s *suite) {
	_, err := s.client.NewAdmin(kafka.Settings{})
	wantClass(t, err, kafka.ClassInvalid)
	_, err = s.client.NewTransactional(s.broker.Settings(), kafka.TransactionalConfig{})
	wantClass(t, err, kafka.ClassInvalid)
	_, err = s.client.NewMembership(s.broker.Settings(), kafka.MembershipConfig{})
	wantClass(t, err, kafka.ClassInvalid)
}
