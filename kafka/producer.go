package kafka

import (
	"context"
	"time"
)

// ProducerConfig says how a [Producer] writes. Every producer is idempotent with acks=all.
type ProducerConfig struct {
	// MaxBufferedRecords bounds the records sent and not yet acknowledged; Send waits at
	// the bound. Default 100,000.
	MaxBufferedRecords int
	// DeliveryTimeout is how long a record may wait for its acknowledgement before its
	// delivery fails. Default 2 minutes.
	DeliveryTimeout time.Duration
}

// Producer writes records.
type Producer interface {
	// Send hands over records, whose Topic, Partition (always explicit) and Timestamp
	// must be set, and returns without waiting for their delivery; it waits only when
	// MaxBufferedRecords is reached. The records and the slice must not be changed until
	// report was called. Records of one partition are written in the order of Send.
	//
	// report is called exactly once, from a goroutine of the client, when the fate of all
	// of records is known; it must not block. When Send returns an error nothing was
	// handed over and report is not called.
	Send(ctx context.Context, records []Record, report func(Delivery)) error
	Closer
}

// Delivery is the fate of the records of one Send.
type Delivery struct {
	// Next holds, for each partition written to, the offset after the last record of
	// this Send. It is complete only if Err is nil. The slice is valid only during the call.
	Next []PartitionOffset
	// Err is the first failure, an [*Error] that names topic and partition.
	Err error
}

// PartitionOffset is an offset in a partition.
type PartitionOffset struct {
	TopicPartition
	Offset int64
}

// TransactionalConfig says how a [Transactional] writes.
type TransactionalConfig struct {
	ProducerConfig
	// ID is the transactional id. Whoever initialises it fences everyone else who uses it.
	ID string
	// Timeout is after how long the broker aborts an open transaction. Default 10 s.
	Timeout time.Duration
}

// Transactional is a producer that writes in transactions, in this order:
//
//	Init ( Begin Send* SendOffsets? (Commit | Abort) )*
//
// One goroutine at a time may use it. Errors say by class ([ClassOf]) what is left:
// ClassAbortable: Abort, then Begin works again. ClassFenced and ClassInDoubt: only Init
// or Close may follow. A transaction may hold offsets only, or nothing at all.
type Transactional interface {
	// Init obtains the id for this producer, fences its former user and ends, before it
	// returns, whatever transaction that one (or this producer itself) left open. It may be
	// called again at any time between transactions or after any error.
	Init(ctx context.Context) error
	// Begin starts a transaction. It sends nothing.
	Begin() error
	Producer
	// SendOffsets puts a group's offsets into the transaction, under exactly this
	// member's id and generation (K5). ClassIllegalGeneration: the same call may be
	// repeated with the member's new generation, inside the same transaction.
	SendOffsets(ctx context.Context, member Member, offsets []CommittedOffset) error
	// Commit waits for every delivery of the transaction and commits it. If one delivery
	// failed nothing is committed and the error has ClassAbortable. ClassInDoubt: no
	// answer came; the transaction may be committed or not. Only Init ends the doubt.
	Commit(ctx context.Context) error
	// Abort drops the transaction. Deliveries that are under way are reported first.
	Abort(ctx context.Context) error
}
