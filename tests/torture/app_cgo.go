//go:build cgo

package main

import "github.com/tidemark-streams/tidemark/kafka/confluent"

func init() { clients["confluent"] = confluent.Client{} }
