package streamstest

import "maps"

// Dropped says by what and why records were dropped.
type Dropped struct {
	// Node of the topology; or the topic, of a record with a negative timestamp.
	Node string
	// Reason is one of few texts, such as "null key".
	Reason string
}

// Dropped is how many records were dropped: what Kafka Streams counts in dropped-records-total.
func (d *Driver) Dropped() int {
	total := 0
	for _, n := range d.dropped {
		total += n
	}
	return total
}

// DroppedBy is how many records each node has dropped, and why.
func (d *Driver) DroppedBy() map[Dropped]int { return maps.Clone(d.dropped) }

func (d *Driver) drop(node, reason string) { d.dropped[Dropped{node, reason}]++ }
