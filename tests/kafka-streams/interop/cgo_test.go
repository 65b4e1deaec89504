//go:build cgo

package interop

import "github.com/tidemark-streams/tidemark/kafka/confluent"

func init() { clients = append(clients, confluent.Client{}) }
