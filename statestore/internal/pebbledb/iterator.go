package pebbledb

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
)

var (
	_ engine.Iter   = (*iterator)(nil)
	_ engine.Walker = (*iterator)(nil)
)

// iterator is Pebble's, with each move guarded. A move reads the value too: one guard
// instead of two, and nobody who moves does without it.
type iterator struct {
	d     *DB
	op    string
	it    *pebble.Iterator
	value []byte
	err   error
}

type move uint8

const (
	first move = iota
	last
	next
	prev
	seek
)

func (it *iterator) First() bool            { return it.move(first, nil) }
func (it *iterator) Last() bool             { return it.move(last, nil) }
func (it *iterator) Next() bool             { return it.move(next, nil) }
func (it *iterator) Prev() bool             { return it.move(prev, nil) }
func (it *iterator) SeekGE(key []byte) bool { return it.move(seek, key) }

func (it *iterator) move(m move, key []byte) (ok bool) {
	if it.err != nil {
		return false
	}
	if it.err = it.d.Err(); it.err != nil {
		return false
	}
	panicked, err := guardRead(it.op, func() (err error) {
		switch m {
		case first:
			ok = it.it.First()
		case last:
			ok = it.it.Last()
		case next:
			ok = it.it.Next()
		case prev:
			ok = it.it.Prev()
		case seek:
			ok = it.it.SeekGE(key)
		}
		if !ok {
			return it.it.Error()
		}
		it.value, err = it.it.ValueAndErr()
		return err
	})
	if err != nil {
		it.err = it.d.outcome(it.op, err, panicked)
		return false
	}
	return ok
}

func (it *iterator) Key() []byte   { return it.it.Key() }
func (it *iterator) Value() []byte { return it.value }
func (it *iterator) Err() error    { return it.err }

func (it *iterator) Close() error {
	if it.it == nil {
		return it.err
	}
	i := it.it
	it.it = nil
	if err := it.d.EndRead(it.op, i); it.err == nil {
		it.err = err
	}
	return it.err
}

// walkCheck is after how many rows a walk looks whether the database has failed.
const walkCheck = 64

// Walk takes all moves under one guard: a guard for each costs nearly as much as the move.
func (it *iterator) Walk(reverse bool, each func(key, value []byte) bool) (done bool) {
	if it.err != nil {
		return false
	}
	for !done {
		if it.err = it.d.Err(); it.err != nil {
			return false
		}
		more := false
		panicked, err := guardWalk(it.op, func(outside *bool) (err error) {
			done, more, err = it.rows(walkCheck, reverse, outside, each)
			return err
		})
		if err != nil {
			it.err = it.d.outcome(it.op, err, panicked)
			return false
		}
		if !more {
			return done
		}
	}
	return done
}

// rows gives up to n rows to each. outside is true while each, which is not ours, runs.
func (it *iterator) rows(n int, reverse bool, outside *bool, each func(key, value []byte) bool) (done, more bool, err error) {
	for range n {
		ok := false
		if reverse {
			ok = it.it.Prev()
		} else {
			ok = it.it.Next()
		}
		if !ok {
			err = it.it.Error()
			return err == nil, false, err
		}
		if it.value, err = it.it.ValueAndErr(); err != nil {
			return false, false, err
		}
		*outside = true
		more = each(it.it.Key(), it.value)
		*outside = false
		if !more {
			return false, false, nil
		}
	}
	return false, true, nil
}
