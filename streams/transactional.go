package streams

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
)

// coordinatorPatience is how long one attempt to initialise a transactional id may take. What is
// only slow is tried again; a cluster that cannot do transactions is recognised by it.
const coordinatorPatience = 15 * time.Second

// transactional is a client's, with a memory: once a transactional id of the application was
// initialised, the cluster can do transactions, and one whose coordinator does not show up is
// in trouble (a restart, too few replicas in sync) that passes. Only at the first start does it
// mean that transactions are impossible.
type transactional struct {
	kafka.Transactional
	id     string
	worked *atomic.Bool
}

// Init initialises the transactional id.
func (t *transactional) Init(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, coordinatorPatience)
	defer cancel()
	err := t.Transactional.Init(ctx)
	switch {
	case err == nil:
		t.worked.Store(true)
	case t.worked.Load() && kafka.IsClass(err, kafka.ClassTransactionsUnavailable):
		return &kafka.Error{Class: kafka.ClassRetriable, Op: "wait for the coordinator of", On: t.id, Err: err}
	}
	return err
}
