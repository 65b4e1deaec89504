package processor

import (
	"fmt"
	"slices"

	"github.com/tidemark-streams/tidemark/statestore"
)

// ReadsByKey says that the processor reads in the store, of each record, the row with the
// record's key, encoded as in the topic that the record comes from. A task then reads the rows
// of many waiting records at once, in the order of the keys, which for a state larger than the
// memory costs a third. It is a hint: when it is not true, time is lost and nothing else. The
// DSL gives it by itself. The store is a key-value store of the processor's.
func ReadsByKey(t *Topology, processor, store string) {
	n := t.byName[processor]
	if n == nil && len(t.problems) > 0 {
		return // one of them is why it is missing
	}
	if n == nil || !slices.Contains(n.stores, store) {
		t.problem("store %s is said to be read by key in processor %s, which does not have it", store, processor)
		return
	}
	n.byKey = append(n.byKey, store)
}

// openByKey finds which stores are read with the keys of which topics.
func (in *Instance) openByKey() error {
	for _, n := range in.sub.nodes {
		if n.kind != sourceKind {
			continue
		}
		stores, err := in.readByKeyBelow(n, map[*node]bool{})
		if err != nil {
			return err
		}
		for _, topic := range n.topics {
			if len(stores) > 0 {
				in.byKey[topic] = stores
			}
		}
	}
	return nil
}

func (in *Instance) readByKeyBelow(n *node, seen map[*node]bool) (stores []*statestore.KeyValue, err error) {
	if seen[n] {
		return nil, nil
	}
	seen[n] = true
	for _, name := range n.byKey {
		kv, err := in.env.Stores.KeyValue(name)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", n, err)
		}
		stores = append(stores, kv)
	}
	for _, c := range n.children {
		more, err := in.readByKeyBelow(c, seen)
		if err != nil {
			return nil, err
		}
		stores = append(stores, more...)
	}
	return stores, nil
}

// WantsKeys tells whether Prefetch would do anything for keys of that topic now.
func (in *Instance) WantsKeys(topic string) bool {
	for _, kv := range in.byKey[topic] {
		if kv.CanPrefetch() {
			return true
		}
	}
	return false
}

// Prefetch reads ahead what the records with these keys, which wait to be processed, will read
// (see [ReadsByKey]).
func (in *Instance) Prefetch(topic string, keys [][]byte) error {
	for _, kv := range in.byKey[topic] {
		if err := kv.Prefetch(keys); err != nil {
			return err
		}
	}
	return nil
}
