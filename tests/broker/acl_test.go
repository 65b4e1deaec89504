package broker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/streams"
)

// everybody is who connects without a name.
const everybody = "User:ANONYMOUS"

// What each missing permission must be called, so that an operator finds it.
func TestMissingACL(t *testing.T) {
	t.Parallel()
	n := start(t, "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "allow.everyone.if.no.acl.found=true")
	cases := []struct {
		name      string
		guarantee streams.Guarantee
		// denied is what is denied, on what; the rest of the resource stays allowed
		denied func(a *app) (*kadm.ACLBuilder, string)
		op     kadm.ACLOperation
	}{
		{"read an input", streams.AtLeastOnce, func(a *app) (*kadm.ACLBuilder, string) { return kadm.NewACLs().Topics(a.in), a.in }, kadm.OpRead},
		{"describe an input", streams.AtLeastOnce, func(a *app) (*kadm.ACLBuilder, string) { return kadm.NewACLs().Topics(a.in), a.in }, kadm.OpDescribe},
		{"write an output at least once", streams.AtLeastOnce, func(a *app) (*kadm.ACLBuilder, string) { return kadm.NewACLs().Topics(a.out), a.out }, kadm.OpWrite},
		{"write an output exactly once", streams.ExactlyOnce, func(a *app) (*kadm.ACLBuilder, string) { return kadm.NewACLs().Topics(a.out), a.out }, kadm.OpWrite},
		{"write a changelog", streams.ExactlyOnce, func(a *app) (*kadm.ACLBuilder, string) {
			return kadm.NewACLs().Topics(a.id + "-counts-changelog"), a.id + "-counts-changelog"
		}, kadm.OpWrite},
		{"read the placement topic", streams.ExactlyOnce, func(a *app) (*kadm.ACLBuilder, string) {
			return kadm.NewACLs().Topics(a.id + "-placement"), a.id + "-placement"
		}, kadm.OpDescribe},
		{"group", streams.ExactlyOnce, func(a *app) (*kadm.ACLBuilder, string) { return kadm.NewACLs().Groups(a.id), a.id }, kadm.OpRead},
		{"transactional id", streams.ExactlyOnce, func(a *app) (*kadm.ACLBuilder, string) {
			return kadm.NewACLs().TransactionalIDs(a.id + "-").ResourcePatternType(kadm.ACLPatternPrefixed), a.id + "-"
		}, kadm.OpWrite},
	}
	for _, c := range clients {
		for _, x := range cases {
			t.Run(c.Name()+"/"+x.name, func(t *testing.T) {
				t.Parallel()
				a := newApp(t, n.addr, c, x.guarantee)
				a.createTopics()
				cl, _ := admin(t, n.addr)
				if err := cl.ProduceSync(bounded(t), a.lines(10, map[string]int64{})...).FirstErr(); err != nil {
					t.Fatal(err)
				}
				on, name := x.denied(a)
				deny(t, n.addr, on, x.op)
				a.run(a.config())
				err := a.fails(kafka.ClassUnauthorized, "Read on its input topics ("+a.in+")", "Write and Describe on its output topics ("+a.out+")",
					"on topics with prefix "+a.id+"-", "Read on group "+a.id, "transactional ids with prefix "+a.id+"-")
				if cause, _, found := strings.Cut(err.Error(), "; the application needs these ACLs"); !found || !strings.Contains(cause, name) {
					t.Errorf("error %q does not say that %s is in the way", err, name)
				}
			})
		}
	}
}

// deny takes one operation on a resource from everybody, and leaves the others.
func deny(t *testing.T, addr string, on *kadm.ACLBuilder, op kadm.ACLOperation) {
	t.Helper()
	_, adm := admin(t, addr)
	create := func() {
		t.Helper()
		results, err := adm.CreateACLs(bounded(t), on)
		for _, r := range results {
			if err == nil {
				err = r.Err
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	on.Operations(kadm.OpAll).Allow(everybody)
	create()
	on.Operations(op).MaybeAllow().Deny(everybody)
	create()
	// The answer comes from the controller, the effect a moment later.
	on.Operations(op).DenyHosts("*")
	until(t, "the broker knows the ACL", func() string {
		results, err := adm.DescribeACLs(bounded(t), on)
		for _, r := range results {
			if r.Err == nil && len(r.Described) > 0 {
				return ""
			}
		}
		return fmt.Sprint(results, err)
	})
}
