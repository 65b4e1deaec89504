package statestore

import (
	"bytes"
	"fmt"
)

// DeleteRange removes the keys with from <= key < to; nil is open at that end. From a store
// with a changelog it deletes each key that is there, with the timestamp (milliseconds): the
// changelog needs a record for each. From a store without one it takes the same time however
// many keys there are. After an error a part of the keys may be deleted.
func (kv *KeyValue) DeleteRange(from, to []byte, timestamp int64) error {
	if err := kv.s.usable(); err != nil || kv.st.muted {
		return err
	}
	if to != nil && bytes.Compare(from, to) >= 0 {
		return nil
	}
	if kv.st.spec.Changelog == "" {
		if err := kv.s.table.DeleteRange(kv.st.number, from, to); err != nil {
			return fmt.Errorf("delete a range from store %q of %s: %w", kv.st.spec.Name, kv.s.dir, err)
		}
		return nil
	}
	for e, err := range kv.Range(from, to) {
		if err == nil {
			err = kv.Delete(e.Key, timestamp)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
