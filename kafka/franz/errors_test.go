package franz

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

func TestClassOf(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err  error
		want kafka.ErrorClass
	}{
		{kerr.ProducerFenced, kafka.ClassFenced},
		{kerr.InvalidProducerEpoch, kafka.ClassFenced},
		{kerr.InvalidTxnState, kafka.ClassFenced},
		{kerr.InvalidProducerIDMapping, kafka.ClassFenced},
		{kerr.TransactionAbortable, kafka.ClassAbortable},
		{kerr.OutOfOrderSequenceNumber, kafka.ClassAbortable},
		{kerr.ConcurrentTransactions, kafka.ClassRetriable},
		{kerr.IllegalGeneration, kafka.ClassIllegalGeneration},
		{kerr.RebalanceInProgress, kafka.ClassIllegalGeneration},
		{kerr.UnknownMemberID, kafka.ClassUnknownMember},
		{kerr.FencedInstanceID, kafka.ClassInstanceFenced},
		{kerr.OffsetOutOfRange, kafka.ClassOffsetOutOfRange},
		{&kgo.ErrDataLoss{}, kafka.ClassOffsetOutOfRange},
		{kerr.UnknownTopicOrPartition, kafka.ClassUnknownTopic}, // although Kafka calls it retriable
		{kerr.UnknownTopicID, kafka.ClassUnknownTopic},
		{kerr.TopicAlreadyExists, kafka.ClassTopicExists},
		{kerr.MessageTooLarge, kafka.ClassTooLarge},
		{kerr.TopicAuthorizationFailed, kafka.ClassUnauthorized},
		{kerr.TransactionalIDAuthorizationFailed, kafka.ClassUnauthorized},
		{kerr.SaslAuthenticationFailed, kafka.ClassUnauthorized},
		{kerr.InvalidTopicException, kafka.ClassInvalid},
		{kerr.InconsistentGroupProtocol, kafka.ClassInvalid},
		{kerr.NotEnoughReplicas, kafka.ClassRetriable}, // by Kafka's own word
		{kerr.CoordinatorNotAvailable, kafka.ClassRetriable},
		{kerr.UnknownServerError, kafka.ClassFatal},
		{kerr.CorruptMessage, kafka.ClassRetriable},
		{kgo.ErrClientClosed, kafka.ClassClosed},
		{kgo.ErrAborting, kafka.ClassAbortable},
		{kgo.ErrRecordTimeout, kafka.ClassTimeout},
		{context.DeadlineExceeded, kafka.ClassTimeout},
		{context.Canceled, kafka.ClassTimeout},
		{refused, kafka.ClassUnreachable},
		{io.EOF, kafka.ClassUnreachable},
		{&kgo.ErrFirstReadEOF{}, kafka.ClassUnreachable},
		{errors.New("something else"), kafka.ClassFatal},
	} {
		if got := classOf(fmt.Errorf("wrapped: %w", c.err)); got != c.want {
			t.Errorf("%v has class %s, want %s", c.err, got, c.want)
		}
	}
}

// What a context's end means depends on whether anybody answered meanwhile.
func TestFail(t *testing.T) {
	l := newLink([]string{"a:1", "b:2"}, time.Second)
	defer l.cancel()
	c := l.call("do")
	if c.fail("", nil) != nil {
		t.Error("no error became one")
	}
	err := c.fail("it", context.DeadlineExceeded)
	if !kafka.IsClass(err, kafka.ClassUnreachable) || !strings.Contains(err.Error(), "a:1,b:2") || !strings.HasPrefix(err.Error(), "do it: ") {
		t.Errorf("nobody answered: %v, class %s", err, kafka.ClassOf(err))
	}
	l.OnBrokerConnect(kgo.BrokerMetadata{}, 0, nil, errors.New("connection refused"))
	if err := c.fail("", context.DeadlineExceeded); !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("the reason is not told: %v", err)
	}
	l.OnBrokerE2E(kgo.BrokerMetadata{}, 0, kgo.BrokerE2E{ReadErr: io.EOF})
	if err := c.fail("", context.DeadlineExceeded); !kafka.IsClass(err, kafka.ClassUnreachable) {
		t.Errorf("a broken read is no answer: %v", err)
	}
	l.OnBrokerE2E(kgo.BrokerMetadata{}, 0, kgo.BrokerE2E{})
	if err := c.fail("", context.DeadlineExceeded); !kafka.IsClass(err, kafka.ClassTimeout) {
		t.Errorf("somebody answered: %v, class %s", err, kafka.ClassOf(err))
	}
	if err := l.call("do").fail("", context.DeadlineExceeded); !kafka.IsClass(err, kafka.ClassUnreachable) {
		t.Errorf("an answer to an earlier call counts: %v", err)
	}
	inner := c.class(kafka.ClassAbortable, "x", errors.New("why"))
	if got := c.fail("y", inner); got.Error() != inner.Error() || !kafka.IsClass(got, kafka.ClassAbortable) {
		t.Errorf("a classified error was classified again: %v", got)
	}
}
