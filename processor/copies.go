package processor

// copies makes copies of small pieces of bytes, each the caller's own, several in one allocation:
// an allocation costs more than the copy of a key.
//
// A program that keeps one piece keeps the whole block; that is why blocks are small. (The bytes as
// they came need no copy at all, but who keeps one key of those would keep a whole fetch.)
type copies struct {
	block []byte
	used  int // a number, and not a shorter and shorter slice: see recordClock
}

const (
	copiesBlock = 1 << 10
	// A larger piece gets an allocation of its own.
	copiesPiece = copiesBlock / 4
)

// of gives a copy of b, which is not nil and has no spare capacity.
func (c *copies) of(b []byte) []byte {
	if len(b) > copiesPiece {
		return append(make([]byte, 0, len(b)), b...)
	}
	end := c.used + len(b)
	if end > len(c.block) || c.block == nil {
		c.block, c.used, end = make([]byte, copiesBlock), 0, len(b)
	}
	p := c.block[c.used:end:end]
	c.used = end
	copy(p, b)
	return p
}
