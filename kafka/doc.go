// Package kafka says what Tidemark needs of a Kafka client, and contains no client.
//
// A user of Tidemark meets [Settings] (TLS, SASL, buffers), [Header], and the two clients:
//
//	streams.Config{Client: franz.Client{}}      // the default
//	streams.Config{Client: confluent.Client{}}  // librdkafka, needs cgo
//
// # For the maintainer
//
// Owns: the record types ([Record], [Header], [TopicPartition]), the narrow
// interfaces ([Consumer], [Producer], [Transactional], [Membership], [Admin]) that
// the two clients implement (kafka/franz and kafka/confluent), the one error
// vocabulary ([Error], [ErrorClass]) and Kafka's own partitioner ([Partition]).
//
// Never: imports a client library, opens a connection, starts a goroutine.
//
// Called by: task and streams, which see Kafka only through it. Users meet it in
// streams.Config (Client, Settings) and as the type of headers.
//
// Invariants, checked for every client by the suite kafka/kafkatest on an embedded
// and on a real broker:
//
//	K1  An offset is the offset of the next record, as in Kafka's own commits.
//	K2  Every error that leaves a client is, or wraps, an [*Error] with a class.
//	K3  Every record given to Send is reported exactly once, also when the client is
//	    closed, the transaction aborted or the broker gone.
//	K4  No call outlives its context by more than a moment: what a library can hang
//	    is abandoned by the adapter, and counted.
//	K5  A transactional write carries the member id and generation it was given,
//	    never a fresher one.
package kafka
