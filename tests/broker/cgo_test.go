//go:build cgo

package broker

import "github.com/tidemark-streams/tidemark/kafka/confluent"

func init() {
	clients = append(clients, confluent.Client{})
	askedFor = true
}
