package franz

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark-streams/tidemark/kafka"
)

// DescribeGroup answers for a group that does not exist as older brokers do: it is Dead.
func (a *admin) DescribeGroup(ctx context.Context, group string) (kafka.Group, error) {
	c, err := a.begin("describe group")
	if err != nil {
		return kafka.Group{}, err
	}
	groups, err := patiently(ctx, a.link, func() (kadm.DescribedGroups, error) { return a.adm.DescribeGroups(ctx, group) })
	if err != nil {
		return kafka.Group{}, c.fail(group, err)
	}
	g := groups[group]
	if errors.Is(g.Err, kerr.GroupIDNotFound) {
		return kafka.Group{State: "Dead"}, nil
	}
	if g.Err != nil {
		return kafka.Group{}, c.fail(group, g.Err)
	}
	described := kafka.Group{State: g.State}
	for _, m := range g.Members {
		member := kafka.GroupMember{ID: m.MemberID, ClientID: m.ClientID, Host: m.ClientHost}
		if m.InstanceID != nil {
			member.InstanceID = *m.InstanceID
		}
		described.Members = append(described.Members, member)
	}
	return described, nil
}
