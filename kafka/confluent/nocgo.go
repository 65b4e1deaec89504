//go:build !cgo

package confluent

import (
	"errors"

	"github.com/tidemark-streams/tidemark/kafka"
)

// errNoCgo is what every constructor gives in a program that was built without cgo.
var errNoCgo = &kafka.Error{Class: kafka.ClassInvalid, Op: "use the confluent client",
	Err: errors.New("built without cgo: librdkafka is C code; build with CGO_ENABLED=1 and a C compiler, or use franz.Client")}

// NewAdmin gives an error: built without cgo.
func (Client) NewAdmin(kafka.Settings) (kafka.Admin, error) { return nil, errNoCgo }

// NewConsumer gives an error: built without cgo.
func (Client) NewConsumer(kafka.Settings, kafka.ConsumerConfig) (kafka.Consumer, error) {
	return nil, errNoCgo
}

// NewProducer gives an error: built without cgo.
func (Client) NewProducer(kafka.Settings, kafka.ProducerConfig) (kafka.Producer, error) {
	return nil, errNoCgo
}

// NewTransactional gives an error: built without cgo.
func (Client) NewTransactional(kafka.Settings, kafka.TransactionalConfig) (kafka.Transactional, error) {
	return nil, errNoCgo
}

// NewMembership gives an error: built without cgo.
func (Client) NewMembership(kafka.Settings, kafka.MembershipConfig) (kafka.Membership, error) {
	return nil, errNoCgo
}
