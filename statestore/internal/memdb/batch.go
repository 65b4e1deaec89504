package memdb

import (
	"bytes"

	"github.com/tidemark-streams/tidemark/statestore/internal/engine"
	"github.com/tidwall/btree"
)

// batch remembers its writes until all are known: the tree gets none of a batch that
// cannot be filled.
type batch struct{ writes []write }

type write struct {
	kind kind
	row  row
	to   []byte // of a range
}

type kind uint8

const (
	set kind = iota
	del
	delRange
)

func (b *batch) Set(keyLen, valueLen int) (key, value []byte) {
	buf := make([]byte, keyLen+valueLen)
	key, value = buf[:keyLen:keyLen], buf[keyLen:]
	b.writes = append(b.writes, write{kind: set, row: row{key, value}})
	return key, value
}

func (b *batch) Delete(keyLen int) (key []byte) {
	key = make([]byte, keyLen)
	b.writes = append(b.writes, write{kind: del, row: row{key: key}})
	return key
}

func (b *batch) DeleteRange(lower, upper []byte) {
	b.writes = append(b.writes, write{kind: delRange, row: row{key: bytes.Clone(lower)}, to: bytes.Clone(upper)})
}

// Apply implements engine.Engine.
func (d *DB) Apply(op string, size int, _ bool, fill func(engine.Batch) error) error {
	d.write.Lock()
	defer d.write.Unlock()
	if err := d.Err(); err != nil {
		return err
	}
	b := batch{writes: make([]write, 0, size/64)}
	if err := fill(&b); err != nil {
		return d.Fail(op, err)
	}
	rows := d.rows.Load().Copy()
	for i := range b.writes {
		w := &b.writes[i]
		switch w.kind {
		case set:
			rows.Set(w.row)
		case del:
			rows.Delete(w.row)
		case delRange:
			deleteRange(rows, w.row.key, w.to)
		}
	}
	d.rows.Store(rows)
	return nil
}

func deleteRange(rows *btree.BTreeG[row], lower, upper []byte) {
	if bytes.Compare(lower, upper) < 0 {
		rows.DeleteRange(row{key: lower}, row{key: upper}, &btree.DeleteRangeOptions{NoReturn: true})
	}
}
