package statestore

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkWindowFetch fetches the few windows of one key among those of many: what it
// costs must not depend on the other keys, on dirty entries, or on what has expired.
func BenchmarkWindowFetch(b *testing.B) {
	for _, c := range []struct{ keys, dirty, expired int }{{100, 0, 0}, {10_000, 0, 0}, {10_000, 10_000, 0}, {10_000, 0, 100_000}} {
		b.Run(fmt.Sprintf("keys=%d/dirty=%d/expired=%d", c.keys, c.dirty, c.expired), func(b *testing.B) {
			s := openStore(b, "t", Options{FS: vfs.NewMem(), Logger: quiet(), SyncInterval: time.Hour}, windowSpec(200*time.Second))
			w := windowOf(b, s)
			key := func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)*0x9e3779b97f4a7c15) }
			put := func(n int, start int64) {
				for i := range n {
					must(b, w.Put(key(i), []byte("12345678"), start+int64(i)%10*1000, start))
					if i%10_000 == 9_999 && n != c.dirty {
						commit(b, s, Progress{}, nil)
					}
				}
			}
			put(c.expired, 0)
			for i := range int64(5) {
				put(c.keys, 1_000_000+10_000*i)
			}
			commit(b, s, Progress{}, nil)
			put(c.dirty, 1_050_000)
			b.ReportAllocs()
			i, found := 0, 0
			for b.Loop() {
				for _, err := range w.Fetch(key(i%c.keys), 1_000_000, 1_049_999) {
					must(b, err)
					found++
				}
				i++
			}
			if found != 5*i {
				b.Fatalf("%d entries in %d fetches; want 5 each", found, i)
			}
		})
	}
}
