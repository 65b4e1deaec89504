package table

import (
	"encoding/binary"
	"math/bits"
)

// An entry lies in its arena as: key length, value length, value capacity, store and
// flags (4 bytes each), timestamp (8 bytes), the key padded to 8 bytes, the value. All
// offsets are multiples of 8, so that a reference of 32 bits reaches 32 GiB.
const (
	headerSize = 24
	offKeyLen  = 0
	offValLen  = 4
	offValCap  = 8
	offStore   = 12 // 16 bits of store, 4 of flags, 12 of epoch
	offTime    = 16

	storeMask    = 1<<16 - 1
	flagDirty    = 1 << 16
	flagAbsent   = 2 << 16
	flagUnlogged = 4 << 16
	flagErased   = 8 << 16 // deleted with a range, and no write: not even if dirty
	// The epoch is how many ranges had been deleted when the entry was written.
	epochShift = 20
	maxEpoch   = 1<<12 - 1

	chunkBits = 17 // in units of 8 bytes: a full chunk is 1 MiB
	fullChunk = 8 << chunkBits
	// The first chunks are small: a process may hold thousands of idle tables.
	firstChunk = 8 << 10
	maxChunks  = 1 << (32 - chunkBits)
)

// arena gives out memory from the front and takes it back only as a whole.
type arena struct {
	chunks [][]byte
	inUse  int // chunks that hold entries
	used   int // bytes used of the last of them
	total  int // bytes given out, and of the index beside them
}

func align(n int) int { return (n + 7) &^ 7 }

func (a *arena) at(ref uint32) []byte {
	return a.chunks[ref>>chunkBits][(ref&(1<<chunkBits-1))<<3:]
}

// alloc gives the reference of n bytes, or 0 when the arena has no references left.
func (a *arena) alloc(n int) uint32 {
	n = align(n)
	if a.inUse == 0 || a.used+n > len(a.chunks[a.inUse-1]) || a.used >= fullChunk {
		if !a.nextChunk(n) {
			return 0
		}
	}
	ref := uint32(a.inUse-1)<<chunkBits | uint32(a.used>>3)
	a.used += n
	a.total += n
	return ref
}

// nextChunk opens a chunk with room for n bytes. A chunk left over from an earlier life
// that is too small is replaced.
func (a *arena) nextChunk(n int) bool {
	if a.inUse == maxChunks {
		return false
	}
	start := 0
	if a.inUse == 0 {
		start = 8 // so that no entry has the reference 0
	}
	size := max(chunkSize(a.inUse), start+n)
	switch {
	case a.inUse == len(a.chunks):
		a.chunks = append(a.chunks, make([]byte, size))
	case len(a.chunks[a.inUse]) < start+n:
		a.chunks[a.inUse] = make([]byte, size)
	}
	a.inUse++
	a.used = start
	return true
}

func chunkSize(i int) int {
	if i >= bits.Len(uint(fullChunk/firstChunk)) {
		return fullChunk
	}
	return min(firstChunk<<i, fullChunk)
}

// clear takes all memory back and keeps about so many bytes of it for later.
func (a *arena) clear(keep int) {
	kept := 0
	for i, c := range a.chunks {
		// A chunk of an oversized value is not worth keeping.
		if kept += len(c); len(c) > fullChunk || kept > keep+fullChunk {
			a.chunks[i] = nil
		}
	}
	a.inUse, a.used, a.total = 0, 0, 0
}

func keyLen(e []byte) int  { return int(binary.LittleEndian.Uint32(e[offKeyLen:])) }
func valLen(e []byte) int  { return int(binary.LittleEndian.Uint32(e[offValLen:])) }
func valCap(e []byte) int  { return int(binary.LittleEndian.Uint32(e[offValCap:])) }
func meta(e []byte) uint32 { return binary.LittleEndian.Uint32(e[offStore:]) }
func entryKey(e []byte) []byte {
	return e[headerSize : headerSize+keyLen(e) : headerSize+keyLen(e)]
}
func entryTime(e []byte) int64 { return int64(binary.LittleEndian.Uint64(e[offTime:])) }

func setMeta(e []byte, m uint32) { binary.LittleEndian.PutUint32(e[offStore:], m) }
func setTime(e []byte, timestamp int64) {
	binary.LittleEndian.PutUint64(e[offTime:], uint64(timestamp))
}

// entryValue gives the value, nil when the entry says that the key is absent.
func entryValue(e []byte) []byte {
	if meta(e)&flagAbsent != 0 {
		return nil
	}
	o := headerSize + align(keyLen(e))
	n := o + valLen(e)
	return e[o:n:n]
}

// setValue writes the value in place; the entry must have the capacity.
func setValue(e, value []byte) {
	binary.LittleEndian.PutUint32(e[offValLen:], uint32(len(value)))
	copy(e[headerSize+align(keyLen(e)):], value)
}
