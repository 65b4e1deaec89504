package embedded

import (
	"maps"

	"github.com/tidemark-streams/tidemark/kafka"
)

// Consumer is what a door tells the [Host] about the user's consumer. For implementations of doors.
type Consumer struct {
	// Client makes the host's own clients (restore, transactions, admin), with Settings.
	Client   kafka.Client
	Settings kafka.Settings
	// Group is the consumer's group.
	Group string
	// Start is where a group without offsets begins.
	Start kafka.OffsetSpec
	// Topics, if not nil, are those that the consumer is subscribed to by name, at present; it may be called from any goroutine.
	Topics func() []string
	// Subscribed, if not nil, tells whether the consumer is to get partitions from its group; it may be called from any goroutine.
	Subscribed func() bool
	// Member is the consumer's present membership; it may be called from any goroutine.
	Member func() (kafka.Member, error)
	// Begin has the consumer fetch partitions that were assigned, from offsets. It may run on a
	// goroutine of the host. With BeginLocked it is called under the host's lock, so that no revoke comes between.
	Begin       func(from map[kafka.TopicPartition]int64) error
	BeginLocked bool
	// Seek sets partitions that are being fetched to other offsets; one that is not fetched any more is
	// passed over. It may run on a goroutine of the host.
	Seek func(to map[kafka.TopicPartition]int64) error
	// Stop ends the fetching of partitions that were assigned by hand.
	Stop func(tps []kafka.TopicPartition) error
}

// Positions are the next offsets of the partitions that are here. It is for a door's Begin, which is
// called with the lock held.
func (h *Host) Positions() map[kafka.TopicPartition]int64 {
	all := map[kafka.TopicPartition]int64{}
	for _, w := range h.workers {
		maps.Copy(all, w.Positions())
	}
	return all
}
