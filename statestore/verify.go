package statestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// Verification is what [View.Verify] found.
type Verification struct {
	// Tables and Bytes: the table files that were read, every block of them.
	Tables int
	Bytes  int64
	// Stores are those in the catalog, in the order in which they were first registered.
	Stores []VerifiedStore
	// Problems, each a sentence; empty: everything is as it should be.
	Problems []string
}

// VerifiedStore is what was found of one store.
type VerifiedStore struct {
	Name string
	// Rows in the database.
	Rows int64
	// Bytes of their keys and values.
	Bytes int64
	// Expired are those of the rows that no read shows any more, because a program that has shortened the store's retention
	// has not removed them. The next commit does.
	Expired int64
}

// Verify reads every block of every table file and every row, and checks that each row
// belongs to a store that the catalog knows, has the form of its kind and lies where its time
// and the commit record say; that versions of a key do not overlap; that catalog and commit
// record agree with the data; and the checkpoint files of the program's own stores. What it
// finds is in the result; the error says that it could not go on.
func (v *View) Verify(ctx context.Context) (Verification, error) {
	if v.db == nil {
		return Verification{}, fmt.Errorf("%w: %s", ErrClosed, v.dir)
	}
	c := verifier{v: v, rows: map[uint32]*VerifiedStore{}, wrong: map[string]*wrongRows{}, places: map[uint32]*storePlaces{}}
	err := v.db.VerifyTables(ctx, v.dir, func(name string, bytes int64, err error) {
		c.result.Tables++
		c.result.Bytes += bytes
		if err != nil {
			c.problem("table file %s: %v", name, err)
		}
	})
	if err != nil {
		return c.result, fmt.Errorf("verify %s: %w", v.dir, err)
	}
	for id, spec := range v.meta.catalog.specs {
		c.rows[id] = &VerifiedStore{Name: spec.Name}
		c.places[id] = v.placesOf(id)
	}
	if err := c.readRows(ctx); err != nil {
		return c.result, fmt.Errorf("verify %s: %w", v.dir, err)
	}
	c.checkStores()
	return c.result, nil
}

// verifier is one run of Verify.
type verifier struct {
	v      *View
	result Verification
	rows   map[uint32]*VerifiedStore
	places map[uint32]*storePlaces // nil of a store whose rows may lie anywhere
	wrong  map[string]*wrongRows
}

// wrongRows counts rows with the same thing wrong: there may be millions.
type wrongRows struct {
	n     int64
	first string
}

func (c *verifier) problem(format string, args ...any) {
	c.result.Problems = append(c.result.Problems, fmt.Sprintf(format, args...))
}

// readRows reads the whole database. A damaged block ends the reading, and is a problem.
func (c *verifier) readRows(ctx context.Context) error {
	it, err := c.v.db.NewIter("verify", nil, nil)
	if err != nil {
		return err
	}
	defer it.Close() // its error is that of the last move
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		c.checkRow(it.Key(), it.Value())
	}
	if err := it.Err(); err != nil {
		c.problem("reading stopped after %d rows: %v", n, err)
	}
	for _, what := range slices.Sorted(maps.Keys(c.wrong)) {
		w := c.wrong[what]
		c.problem("%s: %d rows, the first: %s", what, w.n, w.first)
	}
	return nil
}

func (c *verifier) checkRow(key, value []byte) {
	switch {
	case len(key) > 0 && key[0] == spaceMeta:
		c.checkMetaKey(key)
		return
	case len(key) < storePrefixLen || key[0] != spaceData:
		c.wrongRow("key outside of every store", fmt.Sprintf("%x", key))
		return
	}
	id := binary.BigEndian.Uint32(key[1:storePrefixLen])
	row := Row{Key: key[storePrefixLen:], Value: value}
	st, ok := c.rows[id]
	if !ok {
		c.wrongRow(fmt.Sprintf("store %d is not in the catalog", id), fmt.Sprintf("%x", row.Key))
		return
	}
	st.Rows++
	st.Bytes += int64(len(row.Key) + len(value))
	if _, _, err := decodeRow(c.v.meta.catalog.specs[id].Kind, row); err != nil {
		c.wrongRow(fmt.Sprintf("store %q", st.Name), err.Error())
		return
	}
	if p := c.places[id]; p != nil {
		if what, err := p.check(row); errors.Is(err, kinds.ErrDropped) {
			st.Expired++
		} else if err != nil {
			c.wrongRow(fmt.Sprintf("store %q: row %s", st.Name, what), fmt.Sprintf("%x: %v", row.Key, err))
		}
	}
}

func (c *verifier) checkMetaKey(key []byte) {
	if !isMetaKey(key) {
		c.wrongRow("unknown metadata key", fmt.Sprintf("%x", key))
		return
	}
	if rest, ok := bytes.CutPrefix(key, keySchemaChange); ok {
		if id := binary.BigEndian.Uint32(rest); c.rows[id] == nil {
			c.wrongRow(fmt.Sprintf("schema change of store %d, which is not in the catalog", id), fmt.Sprintf("%x", key))
		}
	}
}

func (c *verifier) wrongRow(what, first string) {
	if w, ok := c.wrong[what]; ok {
		w.n++
		return
	}
	c.wrong[what] = &wrongRows{n: 1, first: first}
}

// checkStores compares the records with each other and with the rows.
func (c *verifier) checkStores() {
	m := c.v.meta
	for _, id := range m.catalog.sortedIDs() {
		spec, st := m.catalog.specs[id], c.rows[id]
		c.result.Stores = append(c.result.Stores, *st)
		switch {
		case spec.InMemory && st.Rows > 0:
			c.problem("store %q is kept in memory, and has %d rows here", spec.Name, st.Rows)
		case spec.external && st.Rows > 0:
			c.problem("store %q is kept in a store of the program's own, and has %d rows here", spec.Name, st.Rows)
		}
		if spec.external {
			c.checkCheckpoint(spec)
		}
		if !spec.Kind.expiring() && m.progress.stores[id].clock.Known {
			c.problem("store %q is a %v store, and the commit record gives it a stream time", spec.Name, spec.Kind)
		}
	}
	for _, p := range m.imports {
		if _, ok := m.catalog.ids[p.Store]; !ok {
			c.problem("an import from %s is recorded for store %q, which is not in the catalog", p.Source, p.Store)
		}
	}
}
