package statestore

import (
	"bytes"
	"encoding/binary"
)

// The first byte of a database key says what it belongs to. docs/format.md has the
// layout; what a user gives is always behind a store's prefix, so no key, bound or range
// of a user's can reach the metadata, or another store.
const (
	spaceMeta byte = 0x00
	spaceData byte = 0x20
)

var (
	keyFormat  = []byte{spaceMeta, 'f'}
	keyCatalog = []byte{spaceMeta, 's'}
	keyCommit  = []byte{spaceMeta, 'c'}
	keyOwner   = []byte{spaceMeta, 'o'}
	keyImports = []byte{spaceMeta, 'i'}
	// keySchemaChange is followed by a store's id.
	keySchemaChange = []byte{spaceMeta, 'm'}
)

// storePrefixLen: the space and the store's id, 4 bytes, big-endian.
const storePrefixLen = 5

// maxStoreID keeps the end of the last store's range inside the data space.
const maxStoreID = 1<<32 - 2

func storePrefix(id uint32) (p [storePrefixLen]byte) {
	p[0] = spaceData
	binary.BigEndian.PutUint32(p[1:], id)
	return p
}

// storeBounds gives the range [lower, upper) of all keys of a store.
func storeBounds(id uint32) (lower, upper []byte) {
	l, u := storePrefix(id), storePrefix(id+1)
	return l[:], u[:]
}

// bounds gives the database range of the user keys from <= key < to; nil is open.
func (st *store) bounds(from, to []byte) (lower, upper []byte) {
	lower = append(bytes.Clone(st.prefix[:]), from...)
	if to == nil {
		_, upper = storeBounds(st.id)
		return lower, upper
	}
	return lower, append(bytes.Clone(st.prefix[:]), to...)
}

// prefixEnd gives the first key behind all keys that begin with prefix; nil = none.
func prefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}
