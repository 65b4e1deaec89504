package franz

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark-streams/tidemark/kafka"
)

// DescribeGroup answers for a group that does not exist as older brokers do: it is Dead. A cluster that has just been made has no
// coordinator for a moment.
func (a *admin) DescribeGroup(ctx context.Context, group string) (kafka.Group, error) {
	c, err := a.begin("describe group")
	if err != nil {
		return kafka.Group{}, err
	}
	return persistently(ctx, c, again, func() (kafka.Group, string, error) {
		g, err := a.describe(ctx, group)
		return g, group, err
	})
}

// describe asks once.
func (a *admin) describe(ctx context.Context, group string) (kafka.Group, error) {
	groups, err := patiently(ctx, a.link, func() (kadm.DescribedGroups, error) { return a.adm.DescribeGroups(ctx, group) })
	if err != nil {
		return kafka.Group{}, err
	}
	g := groups[group]
	if errors.Is(g.Err, kerr.GroupIDNotFound) {
		return kafka.Group{State: "Dead"}, nil
	}
	if g.Err != nil {
		return kafka.Group{}, g.Err
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
