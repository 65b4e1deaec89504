package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// transactionalIDs are those that a process has ever used.
func (w *world) transactionalIDs(name string) ([]string, error) {
	list, err := os.ReadFile(filepath.Join(w.o.dir, name, w.names.app, "transactional-ids"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a process that has used none yet
	}
	return strings.Fields(string(list)), err
}

// fence initialises every transactional id that a process has ever used, as another process that was
// given the same ones would, while the process lives.
func (w *world) fence(ctx context.Context, name string) error {
	ids, err := w.transactionalIDs(name)
	if err != nil {
		return err
	}
	for _, id := range ids {
		q := kmsg.NewPtrInitProducerIDRequest()
		q.TransactionalID, q.TransactionTimeoutMillis = &id, int32(w.o.transactionTimeout().Milliseconds())
		a, err := q.RequestWith(ctx, w.cl)
		if err == nil {
			err = kerr.ErrorForCode(a.ErrorCode)
		}
		// A transaction that is being ended ends it: that process is fenced later, or not at all.
		if err != nil && !errors.Is(err, kerr.ConcurrentTransactions) {
			return fmt.Errorf("initialise transactional id %s: %w", id, err)
		}
	}
	return nil
}
