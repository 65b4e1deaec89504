package streams

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
	"github.com/tidemark-streams/tidemark/task"
)

func TestChangelogConfigs(t *testing.T) {
	hours := func(n int) string { return map[int]string{25: "90000000", 26: "93600000", 27: "97200000"}[n] }
	for _, c := range []struct {
		def  processor.StoreDef
		want map[string]string
	}{
		{processor.KeyValue("s", serde.String, serde.Int64), map[string]string{"cleanup.policy": "compact"}},
		{processor.TimestampedKeyValue("s", serde.String, serde.Int64), map[string]string{"cleanup.policy": "compact"}},
		{processor.Window("s", serde.String, serde.Int64, time.Minute, time.Hour), map[string]string{"cleanup.policy": "compact,delete", "retention.ms": hours(25)}},
		{processor.TimestampedWindow("s", serde.String, serde.Int64, time.Minute, 2*time.Hour), map[string]string{"cleanup.policy": "compact,delete", "retention.ms": hours(26)}},
		{processor.Session("s", serde.String, serde.Int64, 3*time.Hour), map[string]string{"cleanup.policy": "compact,delete", "retention.ms": hours(27)}},
		{processor.Session("s", serde.String, serde.Int64, 1<<63-1), map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "9223372036854"}},
		{processor.Versioned("s", serde.String, serde.Int64, time.Hour), map[string]string{"cleanup.policy": "compact", "min.compaction.lag.ms": hours(25)}},
	} {
		c.want["message.timestamp.type"] = "CreateTime"
		if got := task.ChangelogConfigs(c.def.Definition()); !maps.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.def.Definition(), got, c.want)
		}
	}
}

// configured is an admin that knows the settings of one topic.
type configured struct {
	kafka.Admin
	configs map[string]string
}

func (c configured) TopicConfigs(context.Context, string) (map[string]string, error) {
	return c.configs, nil
}

// A changelog that somebody else made has to keep what the store needs, and may keep more.
func TestVerifyChangelog(t *testing.T) {
	window := processor.Window("s", serde.String, serde.Int64, time.Minute, time.Hour)
	versioned := processor.Versioned("s", serde.String, serde.Int64, time.Hour)
	plain := processor.KeyValue("s", serde.String, serde.Int64)
	for _, c := range []struct {
		def  processor.StoreDef
		have string
		want string // in the error; "" is none
	}{
		{window, "cleanup.policy=compact,delete retention.ms=90000000", ""},
		{window, "cleanup.policy=delete,compact retention.ms=3600000", ""},
		{window, "cleanup.policy=compact,delete retention.ms=-1", ""},
		{window, "cleanup.policy=compact retention.ms=604800000", ""},
		{window, "cleanup.policy=compact,delete retention.ms=3599999", "has retention.ms=3599999, but its store needs at least 3600000"},
		{window, "cleanup.policy=compact,delete", ""}, // a broker that does not tell
		{versioned, "cleanup.policy=compact min.compaction.lag.ms=90000000", ""},
		{versioned, "cleanup.policy=compact min.compaction.lag.ms=0", "has min.compaction.lag.ms=0, but its store needs at least 3600000"},
		{versioned, "cleanup.policy=compact,delete min.compaction.lag.ms=90000000", "has cleanup.policy=compact,delete, but it must be compact"},
		{plain, "cleanup.policy=compact min.compaction.lag.ms=0 retention.ms=1", ""},
		{plain, "cleanup.policy=delete", "has cleanup.policy=delete, but it must be compact"},
	} {
		admin := configured{configs: map[string]string{}}
		for _, f := range strings.Fields(c.have) {
			name, value, _ := strings.Cut(f, "=")
			admin.configs[name] = value
		}
		err := verify(t.Context(), admin, kafka.Topic{Name: "app-s-changelog"}, kafka.NewTopic{Configs: task.ChangelogConfigs(c.def.Definition())})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v with %s: %v, want %q", c.def.Definition(), c.have, err, c.want)
		}
	}
}
