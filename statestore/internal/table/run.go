package table

import (
	"bytes"
	"iter"
)

// Run collects writes of one store to have the last of each key in order, without looking for the earlier ones
// as a [Table] does: where most keys come once or twice, sorting all is cheaper than finding each.
type Run struct {
	s   *Sealed
	sum byte // of what was touched: it has no meaning
}

// NewRun gives an empty run with room for about so many bytes of keys and values.
func NewRun(bytes int) *Run {
	s := newSealed()
	s.buf = make([]byte, 0, bytes+bytes/8)
	return &Run{s: s}
}

// Add appends a write, nil for a deletion. Key and value are copied.
func (r *Run) Add(key, value []byte, timestamp int64) error {
	if len(key) > MaxEntry || len(value) > MaxEntry {
		return ErrTooLarge
	}
	r.s.addWrite(&Write{Key: key, Value: value, Timestamp: timestamp})
	return nil
}

// Bytes is the length of all keys and values.
func (r *Run) Bytes() int { return r.s.Bytes() }

// Last gives the last write of each key, in the order of the keys. The slices are valid until Reset. It
// is called once before that.
func (r *Run) Last() iter.Seq[Write] {
	r.s.Sort()
	return func(yield func(Write) bool) {
		n := r.s.Len()
		if n == 0 {
			return
		}
		r.touch(0)
		w := r.s.At(0)
		for i := 1; i < n; i++ {
			if i%touched == 0 {
				r.touch(i)
			}
			next := r.s.At(i)
			if !bytes.Equal(w.Key, next.Key) && !yield(w) {
				return
			}
			w = next
		}
		yield(w)
	}
}

// touched is how many writes are brought into the processor's cache at a time, and cacheLine the length of what
// one load brings there.
const (
	touched   = 16
	cacheLine = 64
	maxTouch  = 16 * cacheLine // of one write: copying what is longer is fast by itself
)

// touch loads the next writes, which lie anywhere in the buffer. The loads do not depend on each other, so that the
// processor waits for all of them at once, and not for one after the other when each write is copied.
func (r *Run) touch(from int) {
	s := r.s
	for i := from; i < min(from+touched, s.Len()); i++ {
		x := &s.index[i]
		b := s.buf[x.off : x.off+min(int(x.klen)+8+int(x.vlen), maxTouch)]
		for j := 0; j < len(b); j += cacheLine {
			r.sum += b[j]
		}
		r.sum += b[len(b)-1]
	}
}

// Reset makes the run empty, and keeps its memory, unless a large record has made it much larger
// than limit.
func (r *Run) Reset(limit int) {
	if cap(r.s.buf) > 2*limit {
		*r = *NewRun(limit)
		return
	}
	r.s = &Sealed{buf: r.s.buf[:0], index: r.s.index[:0], once: newSealed().once}
}
