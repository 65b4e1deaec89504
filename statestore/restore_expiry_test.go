package statestore

import (
	"bytes"
	"testing"

	"github.com/tidemark-streams/tidemark/statestore/internal/kinds"
)

// What expires while a store is restored is removed from the database, too: nothing would do it
// later.
func TestExpiredRowsGoWhileRestoring(t *testing.T) {
	onEngines(t, func(t *testing.T, o Options) {
		s := openStore(t, "t", o, kindSpecs[:5]...)
		key := func(p Spec, at int64) []byte {
			switch p.Kind {
			case KindSession:
				return kinds.AppendSession(nil, []byte("k"), at, at)
			case KindVersioned:
				return []byte("k")
			}
			return kinds.AppendWindow(nil, []byte("k"), at, 0)
		}
		for _, p := range kindSpecs[:5] {
			const records = 40 // of which the retention keeps two at most
			for n := range int64(records) {
				at := n * 1_000_000
				must(t, s.Restore(p.Name, []RestoreRecord{{Key: key(p, at), Value: []byte("v"), Timestamp: at}}, n+1))
			}
			rows := 0
			prefix := s.storeNamed(t, p.Name).prefix
			for _, k := range rawKeys(t, s) {
				if bytes.HasPrefix(k, prefix[:]) {
					rows++
				}
			}
			if rows > 2 {
				t.Errorf("%s: %d rows are kept of %d restored", p.Name, rows, records)
			}
		}
	})
}
