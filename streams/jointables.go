package streams

import (
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// JoinTables gives the table of the rows that exist on both sides: f of both. An update of either
// side gives an update, with the larger of the timestamps of both rows. The topics of both sides
// need the same number of partitions. A nil result deletes the row.
//
// The result keeps its rows only with a [Materialized]. Without, a row that is deleted on one side is
// deleted in the result also when it was not in it.
func JoinTables[K, L, R, VOut any](left *KTable[K, L], right *KTable[K, R], f func(left L, right R) VOut, value serde.Serde[VOut], options ...TableOption) *KTable[K, VOut] {
	return joinTables(left, right, tablesJoin[L, R, VOut]{needLeft: true, needRight: true, f: func(l L, _ bool, r R, _ bool) VOut { return f(l, r) }}, f == nil, value, options)
}

// LeftJoinTables is [JoinTables] that gives every row of the left side: f is told whether there is
// one on the right side.
func LeftJoinTables[K, L, R, VOut any](left *KTable[K, L], right *KTable[K, R], f func(left L, right R, found bool) VOut, value serde.Serde[VOut], options ...TableOption) *KTable[K, VOut] {
	left.rows.sendOld(true)
	return joinTables(left, right, tablesJoin[L, R, VOut]{needLeft: true, f: func(l L, _ bool, r R, found bool) VOut { return f(l, r, found) }}, f == nil, value, options)
}

// OuterJoinTables is [JoinTables] that gives the rows of both sides: f is told which there are, of
// which there is at least one.
func OuterJoinTables[K, L, R, VOut any](left *KTable[K, L], right *KTable[K, R], f func(left L, hasLeft bool, right R, hasRight bool) VOut, value serde.Serde[VOut], options ...TableOption) *KTable[K, VOut] {
	left.rows.sendOld(true)
	right.rows.sendOld(true)
	return joinTables(left, right, tablesJoin[L, R, VOut]{f: f}, f == nil, value, options)
}

// tablesJoin is what a join of two tables computes.
type tablesJoin[L, R, VOut any] struct {
	needLeft, needRight bool // there is no result without
	f                   func(l L, hasLeft bool, r R, hasRight bool) VOut
}

func joinTables[K, L, R, VOut any](left *KTable[K, L], right *KTable[K, R], j tablesJoin[L, R, VOut], isNil bool, value serde.Serde[VOut], options []TableOption) *KTable[K, VOut] {
	b, o := left.b, tableOptionsOf(options)
	name := b.nodeName("KTABLE-MERGE-", o.named)
	this, other := b.generated("KTABLE-JOINTHIS-"), b.generated("KTABLE-JOINOTHER-")
	if len(o.named) > 0 {
		this, other = name+"-join-this", name+"-join-other"
	}
	b.checkFunction(name, isNil)
	if right.b != b {
		b.problem("%s: the tables come from two builders", name)
	}
	rows := &joined{left: left.rows, right: right.rows}
	ofLeft, ofRight := left.reader(), right.reader()
	read := func() rowReader[K, VOut] { return readJoined(ofLeft, ofRight, j) }
	kept, c := keepRows(b, name, o.kept, left.key, value), o.kept.caching(b, name)
	if kept != nil {
		read = readStore(*kept)
	}
	node := b.hang(&graphNode{name: name, write: func(t *processor.Topology, _ []string) {
		old := rows.old
		addTableJoin(t, this, left.node.name, ofRight, tableJoin[K, L, R, VOut]{j.needLeft, j.needRight, old, left.versioned, j.f})
		addTableJoin(t, other, right.node.name, ofLeft, tableJoin[K, R, L, VOut]{j.needRight, j.needLeft, old, right.versioned, func(r R, hasRight bool, l L, hasLeft bool) VOut { return j.f(l, hasLeft, r, hasRight) }})
		addTableMerge(t, name, []string{this, other}, tableMerge[K, VOut]{handle: kept, key: left.key, caching: c, old: old})
		t.AddCopartition(left.node.name, right.node.name)
	}}, left.node, right.node)
	return &KTable[K, VOut]{b: b, node: node, key: left.key, value: value, rows: rows, read: read}
}

// readJoined reads rows of a join that does not keep them.
func readJoined[K, L, R, VOut any](left rowReader[K, L], right rowReader[K, R], j tablesJoin[L, R, VOut]) rowReader[K, VOut] {
	stores := append(left.stores[:len(left.stores):len(left.stores)], right.stores...)
	return rowReader[K, VOut]{stores, func(ctx processor.StoreContext) rowView[K, VOut] {
		lefts, rights := left.open(ctx), right.open(ctx)
		return rowView[K, VOut]{get: func(key K) (row VOut, at time.Time, ok bool, err error) {
			l, at, hasLeft, err := lefts.get(key)
			if err != nil || j.needLeft && !hasLeft {
				return row, at, false, err
			}
			r, rightAt, hasRight, err := rights.get(key)
			if err != nil || j.needRight && !hasRight || !hasLeft && !hasRight {
				return row, at, false, err
			}
			if rightAt.After(at) {
				at = rightAt
			}
			row = j.f(l, hasLeft, r, hasRight)
			return row, at, !serde.IsNil(&row), nil
		}}
	}}
}

func addTableJoin[K, V, VO, VOut any](t *processor.Topology, name, parent string, other rowReader[K, VO], j tableJoin[K, V, VO, VOut]) {
	processor.AddProcessor(t, name, func() *tableJoinSide[K, V, VO, VOut] {
		return &tableJoinSide[K, V, VO, VOut]{tableJoin: j, other: other}
	}, []string{parent}, other.stores...)
	other.readByKey(t, name)
}

// tableJoin is one side of a join of tables: what an update of its own table gives.
type tableJoin[K, V, VO, VOut any] struct {
	needOwn, needOther, old bool
	versioned               bool // the own table is
	f                       func(v V, has bool, other VO, found bool) VOut
}

type tableJoinSide[K, V, VO, VOut any] struct {
	tableJoin[K, V, VO, VOut]
	other rowReader[K, VO]
	rows  rowView[K, VO]
}

// Init opens the other table.
func (p *tableJoinSide[K, V, VO, VOut]) Init(ctx processor.Context[K, change[VOut]]) error {
	p.rows = p.other.open(ctx)
	return nil
}

// Process joins both values of the change with the other table's row.
func (p *tableJoinSide[K, V, VO, VOut]) Process(ctx processor.Context[K, change[VOut]], r processor.Record[K, change[V]]) error {
	if p.versioned && r.Value.late {
		processor.Drop(ctx, lateRow)
		return nil
	}
	row, at, found, err := p.rows.get(r.Key)
	if err != nil {
		return err
	}
	if !found && (p.needOther || !r.Value.hasNew && !r.Value.hasOld) {
		return nil
	}
	var c change[VOut]
	if r.Value.hasNew || found && !p.needOwn {
		c.setNew(p.f(r.Value.new, r.Value.hasNew, row, found))
	}
	if p.old && (r.Value.hasOld || found && !p.needOwn) {
		c.setOld(p.f(r.Value.old, r.Value.hasOld, row, found))
	}
	out := processor.WithValue(r, c)
	if found && at.After(r.Timestamp) {
		out.Timestamp = at
	}
	return ctx.Forward(out)
}

// addTableMerge adds the node that brings both sides together, and keeps the rows.
func addTableMerge[K, V any](t *processor.Topology, name string, parents []string, m tableMerge[K, V]) {
	if m.handle == nil {
		processor.AddProcessor(t, name, newPass[K, change[V]], parents)
		return
	}
	processor.AddProcessor(t, name, func() *tableMerge[K, V] { p := m; return &p }, parents, *m.handle)
}

type tableMerge[K, V any] struct {
	handle  *processor.TimestampedKeyValueHandle[K, V] // nil: the rows are not kept
	key     serde.Serde[K]
	caching caching
	old     bool
	updates updates[K, V]
}

// Init opens the store.
func (p *tableMerge[K, V]) Init(ctx processor.Context[K, change[V]]) error {
	return p.updates.open(ctx, p.handle.In(ctx), p.key, p.caching, p.old)
}

// Process keeps the new row.
func (p *tableMerge[K, V]) Process(ctx processor.Context[K, change[V]], r processor.Record[K, change[V]]) error {
	return p.updates.put(ctx, r, r.Timestamp)
}
