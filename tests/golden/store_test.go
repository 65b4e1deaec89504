package golden

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
)

// store is a store of a case: how it is declared, and how its rows are read in the end.
type store struct {
	def  processor.StoreDef
	node node // of a declared one
	rows func(in processor.StoreContext) ([]row, error)
}

// The handles of a case's stores, by name: a processor opens what the node declares.
func keyValue(name string) processor.KeyValueHandle[any, any] {
	return processor.KeyValue(name, dyn, dyn)
}

func timestamped(name string) processor.TimestampedKeyValueHandle[any, any] {
	return processor.TimestampedKeyValue(name, dyn, dyn)
}

func windowStore(n node) processor.WindowHandle[any, any] {
	return processor.Window(n.ID, dyn, dyn, ms(n.Size), ms(n.Retention))
}

func sessionStore(n node) processor.SessionHandle[any, any] {
	return processor.Session(n.ID, dyn, dyn, ms(n.Retention))
}

func versionedStore(n node) processor.VersionedHandle[any, any] {
	return processor.Versioned(n.ID, dyn, dyn, ms(n.History))
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func declare(n node) store {
	switch n.Type {
	case "kv":
		h := keyValue(n.ID)
		return store{h, n, func(in processor.StoreContext) ([]row, error) {
			return collect(h.In(in).All(), func(e processor.Entry[any, any]) row { return row{K: datum{e.Key}, V: datum{e.Value}} })
		}}
	case "timestampedKv":
		return timestampedRows(timestamped(n.ID))
	case "window":
		h := windowStore(n)
		return store{h, n, func(in processor.StoreContext) ([]row, error) {
			return sorted(collect(h.In(in).All(), func(e processor.WindowEntry[any, any]) row {
				return row{K: datum{windowed{e.Key, e.Start.UnixMilli(), e.End.UnixMilli()}}, V: datum{e.Value}}
			}))
		}}
	case "session":
		h := sessionStore(n)
		return store{h, n, func(in processor.StoreContext) ([]row, error) {
			return sorted(collect(h.In(in).All(), func(e processor.SessionEntry[any, any]) row {
				return row{K: datum{windowed{e.Key, e.Start.UnixMilli(), e.End.UnixMilli()}}, V: datum{e.Value}}
			}))
		}}
	case "versioned":
		h := versionedStore(n)
		return store{h, n, func(in processor.StoreContext) ([]row, error) {
			return sorted(collect(h.In(in).All(), func(v processor.Version[any, any]) row {
				from, to := v.From.UnixMilli(), v.To.UnixMilli()
				if v.Current {
					return row{K: datum{v.Key}, V: datum{v.Value}, T: &from}
				}
				return row{K: datum{v.Key}, V: datum{v.Value}, T: &from, To: &to}
			}))
		}}
	}
	panic(unsupported{"store " + n.Type})
}

// timestampedRows is the store of a handle that may have values of its own type.
func timestampedRows[V any](h processor.TimestampedKeyValueHandle[any, V]) store {
	return store{h, node{}, func(in processor.StoreContext) ([]row, error) {
		return collect(h.In(in).All(), func(e processor.TimestampedEntry[any, V]) row {
			ms := e.Timestamp.UnixMilli()
			return row{K: datum{e.Key}, V: datum{e.Value}, T: &ms}
		})
	}}
}

func collect[E any](entries iter.Seq2[E, error], show func(E) row) (rows []row, err error) {
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		rows = append(rows, show(e))
	}
	return rows, nil
}

// sorted brings rows of stores whose own order is another one into that of the cases: by key, and
// then by time.
func sorted(rows []row, err error) ([]row, error) {
	slices.SortFunc(rows, func(a, b row) int {
		if x, ok := a.K.v.(windowed); ok {
			y := b.K.v.(windowed)
			return cmp.Or(strings.Compare(text(x.key), text(y.key)), cmp.Compare(x.start, y.start), cmp.Compare(x.end, y.end))
		}
		return cmp.Or(strings.Compare(text(a.K.v), text(b.K.v)), cmp.Compare(*a.T, *b.T))
	})
	return rows, err
}
