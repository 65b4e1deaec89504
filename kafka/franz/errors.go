package franz

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

// classes maps the codes of brokers to classes. A code that is not here is retriable if
// Kafka calls it so, and fatal otherwise.
var classes = map[*kerr.Error]kafka.ErrorClass{
	kerr.ProducerFenced:           kafka.ClassFenced,
	kerr.InvalidProducerEpoch:     kafka.ClassFenced, // how a fenced producer learns it from partition leaders and coordinators
	kerr.InvalidProducerIDMapping: kafka.ClassFenced, // the coordinator has forgotten the id: only initialising helps
	kerr.InvalidTxnState:          kafka.ClassFenced, // the coordinator knows no such transaction any more

	kerr.TransactionAbortable:         kafka.ClassAbortable,
	kerr.OperationNotAttempted:        kafka.ClassAbortable,
	kerr.OutOfOrderSequenceNumber:     kafka.ClassAbortable,
	kerr.UnknownProducerID:            kafka.ClassAbortable,
	kerr.ConcurrentTransactions:       kafka.ClassRetriable,
	kerr.TransactionCoordinatorFenced: kafka.ClassRetriable,

	kerr.IllegalGeneration:    kafka.ClassIllegalGeneration,
	kerr.RebalanceInProgress:  kafka.ClassIllegalGeneration, // the next generation is being made
	kerr.StaleMemberEpoch:     kafka.ClassIllegalGeneration,
	kerr.UnknownMemberID:      kafka.ClassUnknownMember,
	kerr.FencedMemberEpoch:    kafka.ClassUnknownMember,
	kerr.FencedInstanceID:     kafka.ClassInstanceFenced,
	kerr.UnreleasedInstanceID: kafka.ClassInstanceFenced,
	kerr.MemberIDRequired:     kafka.ClassRetriable,

	kerr.OffsetOutOfRange:        kafka.ClassOffsetOutOfRange,
	kerr.UnknownTopicOrPartition: kafka.ClassUnknownTopic,
	kerr.UnknownTopicID:          kafka.ClassUnknownTopic, // the topic was created anew
	kerr.InconsistentTopicID:     kafka.ClassUnknownTopic,
	kerr.TopicAlreadyExists:      kafka.ClassTopicExists,
	kerr.MessageTooLarge:         kafka.ClassTooLarge,
	kerr.RecordListTooLarge:      kafka.ClassTooLarge,

	kerr.TopicAuthorizationFailed:           kafka.ClassUnauthorized,
	kerr.GroupAuthorizationFailed:           kafka.ClassUnauthorized,
	kerr.ClusterAuthorizationFailed:         kafka.ClassUnauthorized,
	kerr.TransactionalIDAuthorizationFailed: kafka.ClassUnauthorized,
	kerr.SaslAuthenticationFailed:           kafka.ClassUnauthorized,
	kerr.UnsupportedSaslMechanism:           kafka.ClassUnauthorized,
	kerr.IllegalSaslState:                   kafka.ClassUnauthorized,

	kerr.InvalidRequest:              kafka.ClassInvalid,
	kerr.InvalidTopicException:       kafka.ClassInvalid,
	kerr.InvalidPartitions:           kafka.ClassInvalid,
	kerr.InvalidReplicationFactor:    kafka.ClassInvalid,
	kerr.InvalidReplicaAssignment:    kafka.ClassInvalid,
	kerr.InvalidConfig:               kafka.ClassInvalid,
	kerr.InvalidTransactionTimeout:   kafka.ClassInvalid,
	kerr.InvalidSessionTimeout:       kafka.ClassInvalid,
	kerr.InvalidGroupID:              kafka.ClassInvalid,
	kerr.InconsistentGroupProtocol:   kafka.ClassInvalid,
	kerr.GroupMaxSizeReached:         kafka.ClassInvalid,
	kerr.InvalidTimestamp:            kafka.ClassInvalid,
	kerr.InvalidRecord:               kafka.ClassInvalid,
	kerr.InvalidCommitOffsetSize:     kafka.ClassInvalid,
	kerr.OffsetMetadataTooLarge:      kafka.ClassInvalid,
	kerr.PolicyViolation:             kafka.ClassInvalid,
	kerr.UnsupportedVersion:          kafka.ClassInvalid,
	kerr.UnsupportedForMessageFormat: kafka.ClassInvalid,
	kerr.UnsupportedCompressionType:  kafka.ClassInvalid,
}

// classOf gives the class of an error of franz-go.
func classOf(err error) kafka.ErrorClass {
	if code := (*kerr.Error)(nil); errors.As(err, &code) {
		if class, ok := classes[code]; ok {
			return class
		}
		if code.Retriable {
			return kafka.ClassRetriable
		}
		return kafka.ClassFatal
	}
	switch {
	case errors.Is(err, kgo.ErrClientClosed):
		return kafka.ClassClosed
	case errors.Is(err, kgo.ErrAborting):
		return kafka.ClassAbortable
	case errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return kafka.ClassTimeout
	case errors.Is(err, kgo.ErrRecordRetries):
		return kafka.ClassRetriable
	case errors.As(err, new(*kgo.ErrDataLoss)):
		return kafka.ClassOffsetOutOfRange // the log is shorter than the position
	case transport(err):
		return kafka.ClassUnreachable
	}
	return kafka.ClassFatal
}

// transport tells whether err means that a connection could not be made or did not last.
func transport(err error) bool {
	return hungUp(err) || errors.As(err, new(*net.OpError)) || errors.As(err, new(*net.DNSError)) ||
		errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) || errors.As(err, new(tls.AlertError)) ||
		kgo.IsRetryableBrokerErr(err)
}

// notConnected tells whether err proves that a request never left: no connection was made.
// A name that does not exist is a mistake and not a state that passes.
func notConnected(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" && !(errors.As(err, &dns) && dns.IsNotFound)
}

// hungUp tells whether a broker closed the connection in place of an answer: it ends or begins, the connection broke, or it
// wants TLS or a login. franz-go suspects the last if that was the first answer, and so does not ask again; of a request that
// goes to several brokers (to a group's coordinator is one) it gives up a part for any broken connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.As(err, new(*kgo.ErrFirstReadEOF))
}
