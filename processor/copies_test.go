package processor

import (
	"bytes"
	"testing"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/serde"
)

// TestCopiesAreApart makes pieces of all sizes, changes each and appends to each: no other may
// change, and none is nil, which would be null.
func TestCopiesAreApart(t *testing.T) {
	var c copies
	var pieces [][]byte
	for i := range 3 * copiesPiece {
		b := bytes.Repeat([]byte{byte(i)}, i%(2*copiesPiece))
		p := c.of(b)
		if p == nil || !bytes.Equal(p, b) {
			t.Fatalf("copy of %x is %x (nil: %v)", b, p, p == nil)
		}
		clear(b)
		pieces = append(pieces, append(p, 0xee)[:len(p)])
	}
	for i, p := range pieces {
		if !bytes.Equal(p, bytes.Repeat([]byte{byte(i)}, i%(2*copiesPiece))) {
			t.Fatalf("piece %d has changed: %x", i, p)
		}
	}
}

// TestDecoderGivesCopies: a record's bytes may be used again, the values that were decoded are the
// processor's.
func TestDecoderGivesCopies(t *testing.T) {
	in := &Instance{}
	for _, text := range []string{"", "key", string(bytes.Repeat([]byte{'x'}, copiesPiece+1))} {
		b := []byte(text)
		s, err := decoder(in, serde.String)(b)
		if err != nil {
			t.Fatal(err)
		}
		v, err := decoder(in, serde.Bytes)(b)
		if err != nil || v == nil || cap(v) != len(v) {
			t.Fatalf("bytes %v of capacity %d for %d, error %v", v, cap(v), len(b), err)
		}
		for i := range b {
			b[i] = 0
		}
		if s != text || string(v) != text {
			t.Errorf("decoded %q and %q, want %q", s, v, text)
		}
	}
}

// TestSmallRecordsShareAllocations is what copies are for.
func TestSmallRecordsShareAllocations(t *testing.T) {
	in := &Instance{}
	key, value := decoder(in, serde.String), decoder(in, serde.Bytes)
	r := kafka.Record{Key: []byte("key-0000000001"), Value: make([]byte, 100)}
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := key(r.Key); err != nil {
			t.Fatal(err)
		}
		if _, err := value(r.Value); err != nil {
			t.Fatal(err)
		}
	}); n > 0 { // it is rounded down: one for nine records
		t.Errorf("%v allocations a record", n)
	}
}
