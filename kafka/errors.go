package kafka

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// ErrorClass says what an error leaves one with. Each client maps its own codes to
// classes; task maps classes to actions. There is no third place that looks at codes.
type ErrorClass uint8

const (
	// ClassFatal is everything that has no other class: this part of the client is of no use any more.
	ClassFatal ErrorClass = iota
	// ClassRetriable may go away by itself; the same call may be repeated.
	ClassRetriable
	// ClassUnreachable: no broker answered within the time given.
	ClassUnreachable
	// ClassTimeout: the context ended first. Of a call that changes something the outcome is
	// unknown only when the class is ClassInDoubt.
	ClassTimeout
	// ClassAbortable: the transaction cannot commit; abort it.
	ClassAbortable
	// ClassFenced: another producer has initialised the transactional id (or the broker
	// aborted a transaction that took too long).
	ClassFenced
	// ClassInDoubt: a commit (or an offset commit in a transaction) got no answer.
	ClassInDoubt
	// ClassIllegalGeneration: the member exists, but has a newer generation by now.
	ClassIllegalGeneration
	// ClassUnknownMember: the group does not (or no longer) know the member id.
	ClassUnknownMember
	// ClassInstanceFenced: another member has the same instance id: another process, or one that this client was itself.
	ClassInstanceFenced
	// ClassOffsetOutOfRange: the offset is before the start or behind the end of the log.
	ClassOffsetOutOfRange
	// ClassUnknownTopic: the topic or partition does not exist.
	ClassUnknownTopic
	// ClassTopicExists: the topic exists already.
	ClassTopicExists
	// ClassTooLarge: a record is larger than the client or the topic allows.
	ClassTooLarge
	// ClassUnauthorized: an ACL is missing.
	ClassUnauthorized
	// ClassTransactionsUnavailable: the broker cannot do transactions (its transaction log
	// cannot be created with the replicas it is configured for).
	ClassTransactionsUnavailable
	// ClassInvalid: the broker or the client refuses the request as such.
	ClassInvalid
	// ClassClosed: the part was closed.
	ClassClosed
)

var classNames = [...]string{"fatal", "retriable", "unreachable", "timeout", "abortable", "fenced", "in doubt",
	"illegal generation", "unknown member", "instance fenced", "offset out of range", "unknown topic", "topic exists",
	"too large", "unauthorized", "transactions unavailable", "invalid", "closed"}

// String names the class.
func (c ErrorClass) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class %d", uint8(c))
}

// Error is an error of a client, with its class.
type Error struct {
	Class ErrorClass
	// Op is what was tried, in lower case: "commit transaction", "produce".
	Op string
	// On names what it was tried on: a topic-partition, a transactional id, addresses. May be empty.
	On string
	// Err is the library's own error.
	Err error
}

// Error gives op, on, and the cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.On != "" {
		b.WriteString(" " + e.On)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	} else {
		b.WriteString(": " + e.Class.String())
	}
	return b.String()
}

// Unwrap gives the library's own error.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf gives the class of the first [*Error] in err's chain, and ClassFatal if there
// is none. It must not be asked about a nil error.
func ClassOf(err error) ErrorClass {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ClassFatal
}

// IsClass tells whether err is an error of class c.
func IsClass(err error, c ErrorClass) bool {
	var e *Error
	return errors.As(err, &e) && e.Class == c
}

var abandoned atomic.Int64

// Abandoned counts the parts of clients that this process had to leave behind because the
// library would not end them (K4). Each keeps some goroutines or threads.
func Abandoned() int64 { return abandoned.Load() }

// CountAbandoned adds one to [Abandoned]. For implementations.
func CountAbandoned() { abandoned.Add(1) }
