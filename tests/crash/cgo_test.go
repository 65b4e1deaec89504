//go:build cgo

package crash

func init() { clients = append(clients, "confluent") }
