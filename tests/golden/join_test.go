package golden

import "github.com/tidemark-streams/tidemark/streams"

func joiner(name string) func(k, l, r any) any {
	pair := func(_, l, r any) any { return text(l) + "," + text(r) }
	switch name {
	case "pair":
		return pair
	case "keyPair":
		return func(k, l, r any) any { return text(k) + ":" + text(pair(k, l, r)) }
	case "sum":
		return func(_, l, r any) any { return num(l) + num(r) }
	case "left":
		return func(_, l, _ any) any { return l }
	case "right":
		return func(_, _, r any) any { return r }
	case "null":
		return func(_, _, _ any) any { return nil }
	}
	panic(unsupported{"joiner " + name})
}

// present gives null for what is not there.
func present[V any](v V, ok bool) any {
	if !ok {
		return nil
	}
	return v
}

func (t tableOf[V]) joinStream(in *stream, n node) *stream {
	if n.Grace != nil {
		panic(unsupported{"joinStreamTable with grace"})
	}
	f, named := joiner(n.Fn), streams.Named(n.ID)
	if n.How == "inner" {
		return streams.JoinTable(in, t.t, func(k, v any, row V) any { return f(k, v, row) }, dyn, named)
	}
	return streams.LeftJoinTable(in, t.t, func(k, v any, row V, found bool) any { return f(k, v, present(row, found)) }, dyn, named)
}

func (t tableOf[V]) rightOf(b *builder, left table, n node) table {
	switch l := left.(type) {
	case tableOf[any]:
		return joinTables(b, l, t, n)
	case tableOf[int64]:
		return joinTables(b, l, t, n)
	}
	panic(unsupported{"joinTables of such a table"})
}

func joinTables[L, R any](b *builder, left tableOf[L], right tableOf[R], n node) table {
	f, o := joiner(n.Fn), options(b, n, dyn)
	switch n.How {
	case "inner":
		return tableOf[any]{streams.JoinTables(left.t, right.t, func(l L, r R) any { return f(nil, l, r) }, dyn, o...), dyn}
	case "left":
		return tableOf[any]{streams.LeftJoinTables(left.t, right.t, func(l L, r R, found bool) any { return f(nil, l, present(r, found)) }, dyn, o...), dyn}
	}
	return tableOf[any]{streams.OuterJoinTables(left.t, right.t, func(l L, hasLeft bool, r R, hasRight bool) any {
		return f(nil, present(l, hasLeft), present(r, hasRight))
	}, dyn, o...), dyn}
}
