package streams

import "github.com/tidemark-streams/tidemark/serde"

// KTable is a table: each record is the new row of its key, or deletes it.
type KTable[K, V any] struct {
	b     *Builder
	node  *graphNode
	key   serde.Serde[K]
	value serde.Serde[V]
}

// Materialized says how a table is kept. The zero value gives its store a generated name.
type Materialized struct {
	// Name of the store. Its changelog is <app id>-<name>-changelog. A store that has a name
	// keeps its data when other parts of the program change.
	Name string
}

// ToStream gives the table's updates as a stream. A deleted row is a record with a null value.
func (t *KTable[K, V]) ToStream(named ...Named) *KStream[K, V] {
	name := t.b.nodeName("KTABLE-TOSTREAM-", named)
	node := hangProcessor(t.b, name, newPass[K, V], []*graphNode{t.node})
	return &KStream[K, V]{b: t.b, node: node, key: t.key, value: t.value}
}
