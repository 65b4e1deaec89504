package memdb

import (
	"bytes"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidwall/btree"
)

// iterator keeps to lower <= key < upper. Between two moves it stands on a row or nowhere;
// a move from nowhere is answered with false.
type iterator struct {
	d            *DB
	rows         *btree.BTreeG[row]
	it           btree.IterG[row]
	lower, upper []byte
	on           bool
	err          error
}

func newIter(d *DB, rows *btree.BTreeG[row], lower, upper []byte) (engine.Iter, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	return &iterator{d: d, rows: rows, lower: bytes.Clone(lower), upper: bytes.Clone(upper)}, nil
}

// begin is for moves that do not depend on where the iterator stands.
func (i *iterator) begin() bool {
	i.on = false
	if i.err == nil {
		i.err = i.d.Err()
	}
	if i.err != nil || i.rows == nil {
		return false
	}
	i.it = i.rows.Iter()
	return true
}

func (i *iterator) settle(found bool) bool {
	if found {
		k := i.it.Item().key
		found = bytes.Compare(k, i.lower) >= 0 && (i.upper == nil || bytes.Compare(k, i.upper) < 0)
	}
	i.on = found
	return found
}

func (i *iterator) First() bool { return i.SeekGE(i.lower) }

func (i *iterator) Last() bool {
	if !i.begin() {
		return false
	}
	if i.upper == nil || !i.it.Seek(row{key: i.upper}) {
		i.it = i.rows.Iter()
		return i.settle(i.it.Last())
	}
	return i.settle(i.it.Prev())
}

func (i *iterator) SeekGE(key []byte) bool {
	if bytes.Compare(key, i.lower) < 0 {
		key = i.lower
	}
	return i.begin() && i.settle(i.it.Seek(row{key: key}))
}

func (i *iterator) Next() bool { return i.may() && i.settle(i.it.Next()) }

func (i *iterator) Prev() bool { return i.may() && i.settle(i.it.Prev()) }

func (i *iterator) may() bool {
	if i.err == nil {
		i.err = i.d.Err()
	}
	i.on = i.on && i.err == nil
	return i.on
}

func (i *iterator) Key() []byte   { return i.it.Item().key }
func (i *iterator) Value() []byte { v := i.it.Item().value; return v[:len(v):len(v)] }
func (i *iterator) Err() error    { return i.err }

func (i *iterator) Close() error {
	i.rows, i.on = nil, false
	i.it = btree.IterG[row]{}
	return i.err
}
