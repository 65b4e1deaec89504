//go:build cgo

package confluent

import (
	"context"
	"errors"
	"slices"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// classes maps the codes that mean the same wherever they come up.
var classes = map[ck.ErrorCode]kafka.ErrorClass{
	ck.ErrTimedOut:        kafka.ClassTimeout,
	ck.ErrTimedOutQueue:   kafka.ClassTimeout,
	ck.ErrMsgTimedOut:     kafka.ClassTimeout,
	ck.ErrRequestTimedOut: kafka.ClassTimeout,

	ck.ErrTransport:      kafka.ClassUnreachable,
	ck.ErrResolve:        kafka.ClassUnreachable,
	ck.ErrAllBrokersDown: kafka.ClassUnreachable,
	ck.ErrNodeUpdate:     kafka.ClassUnreachable,

	ck.ErrFenced:                   kafka.ClassFenced,
	ck.ErrProducerFenced:           kafka.ClassFenced,
	ck.ErrInvalidProducerEpoch:     kafka.ClassFenced,
	ck.ErrInvalidProducerIDMapping: kafka.ClassFenced, // the id expired: only Init helps

	ck.ErrIllegalGeneration:    kafka.ClassIllegalGeneration,
	ck.ErrStaleMemberEpoch:     kafka.ClassIllegalGeneration,
	ck.ErrUnknownMemberID:      kafka.ClassUnknownMember,
	ck.ErrFencedMemberEpoch:    kafka.ClassUnknownMember,
	ck.ErrFencedInstanceID:     kafka.ClassInstanceFenced,
	ck.ErrUnreleasedInstanceID: kafka.ClassInstanceFenced,

	ck.ErrOffsetOutOfRange: kafka.ClassOffsetOutOfRange,
	ck.ErrAutoOffsetReset:  kafka.ClassOffsetOutOfRange,
	ck.ErrLogTruncation:    kafka.ClassOffsetOutOfRange,

	ck.ErrUnknownTopicOrPart: kafka.ClassUnknownTopic,
	ck.ErrUnknownTopicID:     kafka.ClassUnknownTopic,
	ck.ErrUnknownTopic:       kafka.ClassUnknownTopic,
	ck.ErrUnknownPartition:   kafka.ClassUnknownTopic,
	ck.ErrTopicAlreadyExists: kafka.ClassTopicExists,

	ck.ErrMsgSizeTooLarge:        kafka.ClassTooLarge,
	ck.ErrRecordListTooLarge:     kafka.ClassTooLarge,
	ck.ErrOffsetMetadataTooLarge: kafka.ClassTooLarge,

	ck.ErrTopicAuthorizationFailed:           kafka.ClassUnauthorized,
	ck.ErrGroupAuthorizationFailed:           kafka.ClassUnauthorized,
	ck.ErrClusterAuthorizationFailed:         kafka.ClassUnauthorized,
	ck.ErrTransactionalIDAuthorizationFailed: kafka.ClassUnauthorized,
	ck.ErrSaslAuthenticationFailed:           kafka.ClassUnauthorized,
	ck.ErrAuthentication:                     kafka.ClassUnauthorized,

	ck.ErrCoordinatorNotAvailable:      kafka.ClassRetriable,
	ck.ErrCoordinatorLoadInProgress:    kafka.ClassRetriable,
	ck.ErrNotCoordinator:               kafka.ClassRetriable,
	ck.ErrConcurrentTransactions:       kafka.ClassRetriable,
	ck.ErrUnstableOffsetCommit:         kafka.ClassRetriable,
	ck.ErrRebalanceInProgress:          kafka.ClassRetriable,
	ck.ErrLeaderNotAvailable:           kafka.ClassRetriable,
	ck.ErrNotLeaderForPartition:        kafka.ClassRetriable,
	ck.ErrNotController:                kafka.ClassRetriable,
	ck.ErrFencedLeaderEpoch:            kafka.ClassRetriable, // the metadata is from before an election
	ck.ErrUnknownLeaderEpoch:           kafka.ClassRetriable,
	ck.ErrNotEnoughReplicas:            kafka.ClassRetriable,
	ck.ErrNotEnoughReplicasAfterAppend: kafka.ClassRetriable,
	ck.ErrNetworkException:             kafka.ClassRetriable,
	ck.ErrThrottlingQuotaExceeded:      kafka.ClassRetriable,
	ck.ErrQueueFull:                    kafka.ClassRetriable,
	ck.ErrWaitCoord:                    kafka.ClassRetriable,

	ck.ErrInvalidArg:               kafka.ClassInvalid,
	ck.ErrInvalidConfig:            kafka.ClassInvalid,
	ck.ErrInvalidRequest:           kafka.ClassInvalid,
	ck.ErrInvalidPartitions:        kafka.ClassInvalid,
	ck.ErrInvalidReplicationFactor: kafka.ClassInvalid,
	ck.ErrInvalidTimestamp:         kafka.ClassInvalid,
	ck.ErrInvalidRecord:            kafka.ClassInvalid,
	ck.ErrTopicException:           kafka.ClassInvalid, // a name that no topic can have
	ck.ErrPolicyViolation:          kafka.ClassInvalid,
	ck.ErrUnsupportedVersion:       kafka.ClassInvalid,
	ck.ErrUnsupportedFeature:       kafka.ClassInvalid,
	ck.ErrState:                    kafka.ClassInvalid,

	ck.ErrPurgeQueue:    kafka.ClassAbortable,
	ck.ErrPurgeInflight: kafka.ClassAbortable,
	ck.ErrDestroy:       kafka.ClassClosed,
}

// classOf classifies an error of the library that does not concern a transaction.
func classOf(err error) kafka.ErrorClass {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return kafka.ClassTimeout
	}
	var e ck.Error
	if !errors.As(err, &e) {
		return kafka.ClassFatal
	}
	if class, ok := classes[e.Code()]; ok && (!e.IsFatal() || keepsMeaning(class)) {
		return class
	}
	if e.IsRetriable() && !e.IsFatal() {
		return kafka.ClassRetriable
	}
	return kafka.ClassFatal
}

// isCode tells whether err is the library's error with one of the codes.
func isCode(err error, codes ...ck.ErrorCode) bool {
	var e ck.Error
	return errors.As(err, &e) && slices.Contains(codes, e.Code())
}

// keepsMeaning tells the classes that say more than "abort" or "of no use any more", and
// so are reported whatever flags the library has set.
func keepsMeaning(c kafka.ErrorClass) bool {
	switch c {
	case kafka.ClassFenced, kafka.ClassIllegalGeneration, kafka.ClassUnknownMember,
		kafka.ClassInstanceFenced, kafka.ClassUnauthorized:
		return true
	}
	return false
}

// verdict is what an error of a transaction call leaves the transaction with. The order
// of the tests is the one librdkafka prescribes: fatal, abortable, retriable, and
// everything else is fatal.
type verdict uint8

const (
	dead  verdict = iota // the instance is of no use: only a new one
	abort                // the transaction cannot commit, the instance can go on
	again                // the same call may be repeated
)

func judge(err error) (verdict, kafka.ErrorClass) {
	class := classOf(err)
	var e ck.Error
	if !errors.As(err, &e) {
		return dead, class
	}
	switch {
	case e.IsFatal():
		if !keepsMeaning(class) {
			class = kafka.ClassFatal
		}
		return dead, class
	case e.TxnRequiresAbort():
		if !keepsMeaning(class) {
			class = kafka.ClassAbortable
		}
		return abort, class
	case e.IsRetriable():
		if class != kafka.ClassTimeout && class != kafka.ClassUnreachable {
			class = kafka.ClassRetriable
		}
		return again, class
	}
	if !keepsMeaning(class) && class != kafka.ClassInvalid {
		class = kafka.ClassFatal
	}
	return dead, class
}
