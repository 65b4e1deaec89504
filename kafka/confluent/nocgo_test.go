//go:build !cgo

package confluent

import (
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
)

func TestWithoutCgoEveryConstructorSaysSo(t *testing.T) {
	var c Client
	var errs [5]error
	_, errs[0] = c.NewAdmin(kafka.Settings{})
	_, errs[1] = c.NewConsumer(kafka.Settings{}, kafka.ConsumerConfig{})
	_, errs[2] = c.NewProducer(kafka.Settings{}, kafka.ProducerConfig{})
	_, errs[3] = c.NewTransactional(kafka.Settings{}, kafka.TransactionalConfig{})
	_, errs[4] = c.NewMembership(kafka.Settings{}, kafka.MembershipConfig{})
	for i, err := range errs {
		if !kafka.IsClass(err, kafka.ClassInvalid) || !strings.Contains(err.Error(), "built without cgo") {
			t.Errorf("constructor %d: %v", i, err)
		}
	}
}
