//go:build cgo

package confluent

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
)

// Close of a librdkafka consumer with a fatal error does not return: it is left behind and
// counted. In a process of its own, because of what that leaves and of the count.
func TestFencedMembershipIsLeftBehindAndCounted(t *testing.T) {
	t.Parallel()
	if os.Getenv("TIDEMARK_TEST_CHILD") != "fenced" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFencedMembershipIsLeftBehindAndCounted$", "-test.v")
		cmd.Env = append(os.Environ(), "TIDEMARK_TEST_CHILD=fenced")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	b := kafkatest.Embedded(t)
	cfg := kafka.MembershipConfig{Group: "group", Topic: b.CreateTopic(t, "placement", 1, nil), InstanceID: "instance", HeartbeatInterval: 50 * time.Millisecond}
	old, err := Client{}.NewMembership(b.Settings(), cfg)
	must(t, err)
	kafkatest.Eventually(t, 90*time.Second, "the first holds", func() bool { return len(old.State().Holds) == 1 })
	before := kafka.Abandoned()
	heir, err := Client{}.NewMembership(b.Settings(), cfg)
	must(t, err)
	defer closed(t, heir)
	kafkatest.Eventually(t, 90*time.Second, "the first is fenced", func() bool { return kafka.Abandoned() == before+1 })
	if err := old.State().Err; !kafka.IsClass(err, kafka.ClassInstanceFenced) {
		t.Errorf("the state says %v", err)
	}
	start := time.Now()
	closed(t, old)
	closed(t, old)
	if time.Since(start) > time.Second || kafka.Abandoned() != before+1 {
		t.Errorf("closing twice took %v and counted %d", time.Since(start), kafka.Abandoned()-before)
	}
}

// Some versions of librdkafka crash when they leave a group whose coordinator is gone.
func TestMembershipEndsWithoutItsBroker(t *testing.T) {
	t.Parallel()
	for _, instance := range []string{"", "instance"} {
		for _, leave := range []bool{false, true} {
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "placement"))
			must(t, err)
			b := kafkatest.Broker{Addrs: cluster.ListenAddrs()}
			m, err := Client{}.NewMembership(b.Settings(), kafka.MembershipConfig{Group: "group", Topic: "placement", InstanceID: instance})
			must(t, err)
			kafkatest.Eventually(t, 90*time.Second, "the member holds", func() bool { return len(m.State().Holds) == 1 })
			cluster.Close()
			if leave {
				if err := m.Leave(within(t, 300*time.Millisecond)); !kafka.IsClass(err, kafka.ClassUnreachable) {
					t.Errorf("leave: %v", err)
				}
			}
			closed(t, m)
		}
	}
}
