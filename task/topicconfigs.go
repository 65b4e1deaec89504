package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-streams/tidemark/kafka"
)

// VerifyConfigs compares the settings of an internal topic that exists with those that it has to have: it must keep what is
// still needed, and may keep more.
func VerifyConfigs(ctx context.Context, admin kafka.Admin, topic string, want kafka.NewTopic) error {
	configs, err := admin.TopicConfigs(ctx, topic)
	if err != nil {
		return fmt.Errorf("read the configuration of %s: %w", topic, err)
	}
	must := map[string]string{"cleanup.policy": want.Configs["cleanup.policy"]}
	if want.Configs["retention.ms"] == "-1" {
		must["retention.ms"], must["retention.bytes"] = "-1", "-1"
	}
	errs := []error{verifyTime(topic, "retention.ms", configs, want), verifyTime(topic, "min.compaction.lag.ms", configs, want)}
	for _, name := range slices.Sorted(maps.Keys(must)) {
		if is, told := configs[name]; told && is != must[name] && !(name == "cleanup.policy" && policyFits(is, must[name])) {
			errs = append(errs, fmt.Errorf("internal topic %s has %s=%s, but it must be %s: records that are still needed would be deleted", topic, name, is, must[name]))
		}
	}
	return errors.Join(errs...)
}

// verifyTime compares a setting in milliseconds of a topic that exists with what the topology
// wants. Longer does no harm, and the slack is not insisted on: whoever made the topic may have
// chosen another one.
func verifyTime(topic, name string, have map[string]string, want kafka.NewTopic) error {
	wanted, err := strconv.ParseInt(want.Configs[name], 10, 64)
	is, told := have[name]
	if err != nil || wanted < 0 || !told {
		return nil //nolint:nilerr // not asked for, or not to be found out
	}
	needed := wanted - ChangelogSlack.Milliseconds()
	has, err := strconv.ParseInt(is, 10, 64)
	if err == nil && (has >= needed || has == -1 && name == "retention.ms") {
		return nil
	}
	return fmt.Errorf("internal topic %s has %s=%s, but its store needs at least %d: records that are still needed would be deleted; set it to %d", topic, name, is, needed, wanted)
}

// policyFits tells whether a topic with one cleanup policy keeps all that it would keep with
// the other. Policies are lists without an order: a topic that is cleaned in fewer ways keeps more.
func policyFits(has, wanted string) bool {
	allowed := strings.Split(wanted, ",")
	for p := range strings.SplitSeq(has, ",") {
		if p = strings.TrimSpace(p); p != "" && !slices.Contains(allowed, p) {
			return false
		}
	}
	return true
}
