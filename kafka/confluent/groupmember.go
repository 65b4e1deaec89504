//go:build cgo

package confluent

import (
	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// GroupMember gives the present membership of a consumer that subscribes to topics, for
// transactions of this package's own producer. It must not be called after the consumer's Close.
func GroupMember(c *ck.Consumer) (kafka.Member, error) {
	const op = "read the consumer's group membership"
	md, err := c.GetConsumerGroupMetadata()
	if err != nil {
		return kafka.Member{}, invalid(op, "%w", err)
	}
	is, err := identify(md)
	if err != nil {
		return kafka.Member{}, invalid(op, "%w", err)
	}
	return kafka.Member{Group: is.group, ID: is.member, Generation: is.generation, Native: &snapshot{md: md}}, nil
}
