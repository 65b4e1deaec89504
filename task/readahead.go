package task

import (
	"context"

	"github.com/tidemark-streams/tidemark/kafka"
)

// readAhead polls a consumer in a goroutine of its own, at most one poll ahead: while its owner works on
// what one poll brought, the next is read into the other of two buffers. Between begin and take the
// consumer is the goroutine's; no other of its methods may run then.
type readAhead struct {
	polls   [2]kafka.Poll
	next    int                // index of the poll that is under way, or is the next to be
	results chan error         // of the poll under way; it has room for it
	cancel  context.CancelFunc // of the poll under way; nil: there is none
}

func newReadAhead() *readAhead { return &readAhead{results: make(chan error, 1)} }

// underWay tells whether a poll was begun and not taken.
func (a *readAhead) underWay() bool { return a.cancel != nil }

// begin starts a poll, which take or end must follow. What take gave last stays valid; what it gave
// before that does not.
func (a *readAhead) begin(ctx context.Context, c kafka.Consumer) {
	ctx, a.cancel = context.WithTimeout(ctx, idlePoll)
	into := &a.polls[a.next]
	go func() { a.results <- c.Poll(ctx, into) }() // ended by take or end
}

// take waits for the poll under way, and gives what it brought.
func (a *readAhead) take() (*kafka.Poll, error) {
	err := <-a.results
	a.cancel()
	a.cancel = nil
	got := &a.polls[a.next]
	a.next = 1 - a.next
	return got, err
}

// end ends the poll under way, if any, and drops what it brought: those records are read again by whoever goes on.
func (a *readAhead) end() {
	if a.underWay() {
		a.cancel()
		_, _ = a.take()
	}
}
