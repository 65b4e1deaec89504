//go:build !unix

package migration

func heldByKafkaStreams(string) error { return nil }
