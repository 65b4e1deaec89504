package engine

import "math"

// UnknownRows are so many that adding to them does not overflow: what [Engine.EstimateRows] gives for what nobody knows.
const UnknownRows = math.MaxInt64 / 4

// Reader reads rows. op names in errors what is being done.
type Reader interface {
	// Get gives the value of key, copied into buf (which is grown when it is too small; nil
	// is allowed). ok is false when there is none. It allocates nothing when buf is large enough.
	Get(op string, key, buf []byte) (value []byte, ok bool, err error)
	// NewIter gives an iterator over lower <= key < upper; nil is open at that end. It stands
	// nowhere, and must be closed. The bounds are not kept.
	NewIter(op string, lower, upper []byte) (Iter, error)
}

// Iter walks over rows in the order of their keys, in both directions. Each move tells
// whether the iterator stands on a row afterwards; when not, Err tells the end from a
// failure.
type Iter interface {
	// First moves to the first row.
	First() bool
	// Last moves to the last row.
	Last() bool
	// SeekGE moves to the first row with a key that is not before key.
	SeekGE(key []byte) bool
	// Next moves on; the iterator must stand on a row.
	Next() bool
	// Prev moves back; the iterator must stand on a row.
	Prev() bool
	// Key of the row, valid until the next move.
	Key() []byte
	// Value of the row, valid until the next move.
	Value() []byte
	// Err is the failure that ended the last move, or nil.
	Err() error
	// Close gives the iterator's memory back, also when the engine has failed. It returns
	// what Err would; calling it again does nothing.
	Close() error
}

// Walker is an [Iter] that can take many moves at once, cheaper than one by one.
type Walker interface {
	// Walk goes on from the row on which the iterator stands, backwards with reverse, and
	// calls each with every row until it says stop or there are no more; the slices are valid
	// during the call. A panic in each is the caller's own. done is false when each said stop,
	// or at a failure, which Err tells.
	Walk(reverse bool, each func(key, value []byte) (more bool)) (done bool)
}

// Snapshot is a Reader of what was there when it was made. It must be closed.
type Snapshot interface {
	Reader
	// Close gives up the snapshot; its iterators must be closed.
	Close() error
}

// Batch collects the writes of one [Engine.Apply], in order: a later one wins. The slices
// given out are to be filled before the next call.
type Batch interface {
	// Set writes a row: the caller fills in key and value.
	Set(keyLen, valueLen int) (key, value []byte)
	// Delete removes a row, if there is one: the caller fills in the key.
	Delete(keyLen int) (key []byte)
	// DeleteRange removes the rows with lower <= key < upper. Both are needed.
	DeleteRange(lower, upper []byte)
}

// Engine keeps rows.
type Engine interface {
	Reader
	// Snapshot gives a view of what is there now.
	Snapshot(op string) (Snapshot, error)
	// Apply writes one batch, which fill fills (about size bytes), atomically. An error of fill
	// fails the engine as any other does. With sync it waits until the batch is safe on the disk.
	Apply(op string, size int, sync bool, fill func(Batch) error) error
	// Sync waits until everything applied is safe on the disk.
	Sync() error
	// Flush prepares for a Close after which nothing must be replayed.
	Flush() error
	// DiskUsage estimates the bytes that the rows lower <= key < upper take in files.
	DiskUsage(lower, upper []byte) (uint64, error)
	// EstimateRows estimates how many rows there are with lower <= key < upper: settled, by at
	// most about loose more or fewer; [UnknownRows] or more if nobody knows.
	EstimateRows(lower, upper []byte) (settled, loose int64, err error)
	// Fail ends the engine because of what its user has found in it, for example a value
	// that cannot be read, and returns what every later call returns.
	Fail(op string, err error) error
	// Err is the failure as every call returns it, or nil.
	Err() error
	// Failed is closed at the first failure.
	Failed() <-chan struct{}
	// Close ends the engine. It is nil for one that had failed: Err tells that, then too.
	Close() error
}

// Set writes the row with the key of prefix and key, and the value of head and value.
func Set(b Batch, prefix, key, head, value []byte) {
	k, v := b.Set(len(prefix)+len(key), len(head)+len(value))
	copy(k[copy(k, prefix):], key)
	copy(v[copy(v, head):], value)
}

// Delete removes the row with the key of prefix and key.
func Delete(b Batch, prefix, key []byte) {
	k := b.Delete(len(prefix) + len(key))
	copy(k[copy(k, prefix):], key)
}
