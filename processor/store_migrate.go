package processor

import (
	"errors"

	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/statestore"
)

// migrating gives the declaration a migration: from gives the value of the present schema version
// for one that was written as an older version.
func (h declared[K, V]) migrating(from func(version uint32, key K, old []byte) (V, error)) declared[K, V] {
	h.def.migrate = &statestore.Migration{}
	if from == nil {
		return h
	}
	h.def.migrate.Value = func(version uint32, key, old []byte) (b []byte, err error) {
		err = guard(func() (err error) {
			b, err = h.migrated(from, version, key, old)
			return err
		})
		return b, err
	}
	return h
}

func (h declared[K, V]) migrated(from func(version uint32, key K, old []byte) (V, error), version uint32, key, old []byte) ([]byte, error) {
	k, err := h.key.Decode(key)
	if err != nil {
		return nil, &serde.Error{Serde: h.key.Name(), Partition: -1, Offset: -1, Part: serde.PartKey, Err: err}
	}
	v, err := from(version, k, old)
	switch {
	case err != nil:
		return nil, err
	case serde.IsNil(&v):
		return nil, errors.New("the migration gives a null: it changes values and deletes none")
	}
	b, err := h.val.Append(nil, v)
	switch {
	case err != nil:
		return nil, &serde.Error{Serde: h.val.Name(), Partition: -1, Offset: -1, Part: serde.PartValue, Err: err}
	case b == nil:
		return emptyBytes, nil
	}
	return b, nil
}
