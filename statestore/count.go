package statestore

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// countExactly is how many entries are counted one by one before the rest is estimated.
const countExactly = 10_000

// ApproximateCount gives the number of entries: exact up to 10,000, beyond that estimated
// from how much of the store's files the first 10,000 take. It reads those, so it is not
// for every record.
func (kv *KeyValue) ApproximateCount() (int64, error) {
	n := int64(0)
	var at []byte
	for e, err := range kv.All() {
		if err != nil {
			return 0, err
		}
		if n++; n == countExactly {
			at = bytes.Clone(e.Key)
			break
		}
	}
	if n < countExactly {
		return n, nil
	}
	counted, whole, err := kv.filesBehind(at)
	if err != nil {
		return 0, err
	}
	if counted == 0 { // all in memory yet
		return kv.count()
	}
	return max(n, int64(float64(n)*float64(whole)/float64(counted))), nil
}

// filesBehind gives the bytes that the entries up to at take in files, and all entries.
func (kv *KeyValue) filesBehind(at []byte) (counted, whole uint64, err error) {
	lower, upper := kv.st.bounds(nil, nil)
	_, middle := kv.st.bounds(nil, append(at, 0))
	err = kv.s.db.Read("estimate size", func(db *pebble.DB) (err error) {
		if counted, err = db.EstimateDiskUsage(lower, middle); err != nil {
			return err
		}
		whole, err = db.EstimateDiskUsage(lower, upper)
		return err
	})
	return counted, whole, err
}

func (kv *KeyValue) count() (n int64, err error) {
	for _, err := range kv.All() {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}
