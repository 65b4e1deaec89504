//go:build cgo

package streams_test

import "github.com/tidemark-streams/tidemark/kafka/confluent"

func init() { clients = append(clients, confluent.Client{}) }
