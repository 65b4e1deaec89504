package task

import (
	"math"
	"strconv"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/statestore"
)

// ChangelogTopic is the name of a store's changelog.
func ChangelogTopic(appID, store string) string { return appID + "-" + store + "-changelog" }

// ChangelogSlack is how much longer than its store a changelog keeps its records: the broker
// goes by its own clock, the store by the records' timestamps. Kafka Streams adds a day too.
const ChangelogSlack = 24 * time.Hour

// ChangelogConfigs are the settings of a store's changelog, which are those of Kafka Streams.
// What has expired in a window or session store goes from its changelog by time. Compaction
// would take old versions of a key from that of a versioned store, so it has to wait.
func ChangelogConfigs(def processor.Definition) map[string]string {
	configs := map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
	switch def.Kind {
	case statestore.KindWindow, statestore.KindTimestampedWindow, statestore.KindSession:
		configs["cleanup.policy"] = "compact,delete"
		configs["retention.ms"] = withSlack(def.Retention)
	case statestore.KindVersioned:
		configs["min.compaction.lag.ms"] = withSlack(def.Retention)
	}
	return configs
}

func withSlack(d time.Duration) string {
	return strconv.FormatInt((min(d, math.MaxInt64-ChangelogSlack) + ChangelogSlack).Milliseconds(), 10)
}
