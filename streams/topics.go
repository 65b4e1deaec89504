package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/task"
)

// placementTopic is the topic whose holder runs the tasks.
func placementTopic(appID string) string { return appID + "-placement" }

// prepareTopics describes all topics, creates the internal ones that are missing and verifies
// those that exist. Everything wrong is reported at once.
func (a *App) prepareTopics(ctx context.Context, admin kafka.Admin) error {
	tctx, unhook := a.untilStopped(ctx)
	defer unhook()
	tctx, cancel := context.WithTimeout(tctx, a.cfg.StartTimeout)
	defer cancel()
	return a.orStopped(ctx, a.findTopics(tctx, askedAgain{admin}))
}

func (a *App) findTopics(ctx context.Context, admin kafka.Admin) error {
	user := a.userTopics()
	topics, err := a.describeUser(ctx, admin, user)
	if err != nil {
		return err
	}
	wanted, err := a.internalTopics(topics)
	if err != nil {
		return err
	}
	created, err := a.createMissing(ctx, admin, wanted)
	if err != nil {
		return err
	}
	for name, t := range created {
		topics[name] = t
	}
	a.mu.Lock()
	a.topics = topics
	a.mu.Unlock()
	return nil
}

// unknownTopicPatience is how long a topic that is not shown is asked for again: the brokers'
// metadata lags behind the answer to whoever created it, by seconds where they are busy (2.2 s were seen).
const unknownTopicPatience = 5 * time.Second

// describeUser describes the user's topics, all of which must exist.
func (a *App) describeUser(ctx context.Context, admin kafka.Admin, user []string) (map[string]kafka.Topic, error) {
	patience := time.Now().Add(min(unknownTopicPatience, a.cfg.StartTimeout/2))
	for told := false; ; told = true {
		topics, err := admin.Topics(ctx, user...)
		if err != nil {
			return nil, err
		}
		missing := slices.DeleteFunc(slices.Clone(user), func(name string) bool { _, ok := topics[name]; return ok })
		if len(missing) == 0 {
			return topics, nil
		}
		if time.Now().After(patience) || ctx.Err() != nil {
			return nil, fmt.Errorf("unknown topic %s: create what is missing before the application starts (it creates internal topics only)", strings.Join(missing, ", "))
		}
		if !told {
			a.log.Info("topics are not shown by the brokers: they are asked again for a moment, in case they have just been created", "topics", missing)
		}
		if err := a.wait(ctx, nil, moment); err != nil {
			return nil, err
		}
	}
}

// askedAgain is an admin whose questions of the start are asked again, until their context ends, while no broker answers: a client may
// give up on one request earlier.
type askedAgain struct{ kafka.Admin }

func (a askedAgain) Topics(ctx context.Context, names ...string) (topics map[string]kafka.Topic, err error) {
	err = again(ctx, func() error { topics, err = a.Admin.Topics(ctx, names...); return err })
	return topics, err
}

func (a askedAgain) TopicConfigs(ctx context.Context, name string) (configs map[string]string, err error) {
	err = again(ctx, func() error { configs, err = a.Admin.TopicConfigs(ctx, name); return err })
	return configs, err
}

// CreateTopics says that a topic exists where the first question made it and its answer was lost.
func (a askedAgain) CreateTopics(ctx context.Context, topics ...kafka.NewTopic) error {
	return again(ctx, func() error { return a.Admin.CreateTopics(ctx, topics...) })
}

// again asks until there is an answer, or the context ends; then the last error tells more than the context's.
func again(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if !(kafka.IsClass(err, kafka.ClassUnreachable) || kafka.IsClass(err, kafka.ClassRetriable) || kafka.IsClass(err, kafka.ClassTimeout)) {
			return err
		}
		pause := time.NewTimer(200 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}

// userTopics are the topics that the user owns, sorted.
func (a *App) userTopics() []string {
	return a.owned(func(sub *processor.Subtopology) []string { return slices.Concat(sub.Sources, sub.Sinks) })
}

// inputs and outputs are the topics of the user that the application reads and writes.
func (a *App) inputs() []string {
	return a.owned(func(sub *processor.Subtopology) []string { return sub.Sources })
}
func (a *App) outputs() []string {
	return a.owned(func(sub *processor.Subtopology) []string { return sub.Sinks })
}

// owned gives, sorted, those topics of all sub-topologies that are not internal.
func (a *App) owned(of func(*processor.Subtopology) []string) []string {
	seen := map[string]bool{}
	for _, sub := range a.topology.Subtopologies() {
		for _, name := range of(sub) {
			if _, internal := a.topology.Internal(name); !internal {
				seen[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// internalTopics decides partitions and settings of the internal topics. A repartition topic
// has as many partitions as the largest topic of the sub-topologies that write it, unless it
// says otherwise; so counts flow down from the user's topics.
func (a *App) internalTopics(user map[string]kafka.Topic) (map[string]kafka.NewTopic, error) {
	counts := map[string]int32{}
	for name, t := range user {
		counts[name] = t.Partitions
	}
	subs := a.topology.Subtopologies()
	for _, i := range a.topology.InternalTopics() {
		counts[i.Name] = i.Partitions
	}
	pinned := a.pinPartitions(counts)
	for changed := true; changed; {
		changed = a.alignPartitions(counts, pinned)
		for _, sub := range subs {
			n := maxPartitions(sub, counts)
			for _, sink := range sub.Sinks {
				if i, internal := a.topology.Internal(sink); internal && i.Partitions == 0 && !pinned[sink] && counts[sink] < n {
					counts[sink] = n
					changed = true
				}
			}
		}
	}
	if err := a.checkPartitions(counts); err != nil {
		return nil, err
	}
	wanted := map[string]kafka.NewTopic{}
	add := func(name string, partitions int32, configs map[string]string) {
		replication := int16(a.cfg.Replication)
		if replication == 0 {
			replication = -1
		}
		wanted[name] = kafka.NewTopic{Name: name, Partitions: partitions, Replication: replication, Configs: configs}
	}
	for _, i := range a.topology.InternalTopics() {
		if counts[i.Name] == 0 {
			return nil, fmt.Errorf("the number of partitions of internal topic %s cannot be told: nothing with a known number writes it", i.Name)
		}
		add(task.RealTopic(a.topology, a.cfg.AppID, i.Name), counts[i.Name], map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1", "segment.bytes": "52428800", "message.timestamp.type": "CreateTime"})
	}
	for _, sub := range subs {
		for _, s := range sub.Stores {
			if s.Unlogged {
				continue
			}
			add(task.ChangelogTopic(a.cfg.AppID, s.Name), maxPartitions(sub, counts), task.ChangelogConfigs(s))
		}
	}
	add(placementTopic(a.cfg.AppID), 1, map[string]string{"cleanup.policy": "compact"})
	return wanted, nil
}

func maxPartitions(sub *processor.Subtopology, counts map[string]int32) int32 {
	var n int32
	for _, s := range sub.Sources {
		n = max(n, counts[s])
	}
	return n
}

// createMissing creates what does not exist and verifies what does.
func (a *App) createMissing(ctx context.Context, admin kafka.Admin, wanted map[string]kafka.NewTopic) (map[string]kafka.Topic, error) {
	var names []string
	for name := range wanted {
		names = append(names, name)
	}
	slices.Sort(names)
	have, err := admin.Topics(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("describe internal topics: %w", err)
	}
	// No reset leaves this topic, and nothing removes it otherwise: without it the group is new.
	if _, ok := have[placementTopic(a.cfg.AppID)]; ok {
		a.existed.Store(true)
	}
	var create []kafka.NewTopic
	var errs []error
	for _, name := range names {
		t, ok := have[name]
		if !ok {
			create = append(create, wanted[name])
			continue
		}
		errs = append(errs, verify(ctx, admin, t, wanted[name]))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(create) == 0 {
		return have, nil
	}
	for _, t := range create {
		a.log.Info("create internal topic", "topic", t.Name, "partitions", t.Partitions)
	}
	err = admin.CreateTopics(ctx, create...)
	others := kafka.IsClass(err, kafka.ClassTopicExists) // another process of the application is creating them too
	if err != nil && !others {
		return nil, fmt.Errorf("create internal topics: %w", err)
	}
	if have, err = shown(ctx, admin, names); err != nil {
		return nil, err
	}
	for _, t := range create {
		if others {
			errs = append(errs, verify(ctx, admin, have[t.Name], t))
		}
	}
	return have, errors.Join(errs...)
}

// shown describes topics that exist, and waits until the broker shows all of them.
func shown(ctx context.Context, admin kafka.Admin, names []string) (map[string]kafka.Topic, error) {
	for {
		have, err := admin.Topics(ctx, names...)
		if err != nil {
			return nil, fmt.Errorf("describe internal topics: %w", err)
		}
		missing := slices.IndexFunc(names, func(name string) bool { _, ok := have[name]; return !ok })
		if missing < 0 {
			return have, nil
		}
		pause := time.NewTimer(50 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, fmt.Errorf("internal topic %s was created, but the broker does not show it: %w", names[missing], ctx.Err())
		}
	}
}

// verify compares an internal topic with what it has to be.
func verify(ctx context.Context, admin kafka.Admin, have kafka.Topic, want kafka.NewTopic) error {
	if have.Partitions != want.Partitions {
		return fmt.Errorf("internal topic %s has %d partitions, but the topology needs %d (the largest number among its sources); the number of an input's partitions was changed, or the topic was created by hand: reset the application, or give the input its old number",
			have.Name, have.Partitions, want.Partitions)
	}
	return task.VerifyConfigs(ctx, admin, have.Name, want)
}

// taskIDs are all tasks of the topology: one per partition of each sub-topology's largest
// source.
func (a *App) taskIDs() []processor.TaskID {
	var ids []processor.TaskID
	for _, sub := range a.topology.Subtopologies() {
		var n int32
		for _, s := range sub.Sources {
			n = max(n, a.topics[task.RealTopic(a.topology, a.cfg.AppID, s)].Partitions)
		}
		for p := range n {
			ids = append(ids, processor.TaskID{Subtopology: sub.ID, Partition: p})
		}
	}
	return ids
}

// explain adds what an operator needs to know to errors whose own text does not help.
func (a *App) explain(err error) error {
	switch {
	case err == nil || !kafka.IsClass(err, kafka.ClassUnauthorized):
		return err
	}
	return fmt.Errorf("%w; the application needs these ACLs: Read on its input topics (%s); Write and Describe on its output topics (%s); Create, Read, Write, Delete, Describe and DescribeConfigs on topics with prefix %s-; Read on group %s; Write and Describe on transactional ids with prefix %s-; IdempotentWrite on the cluster",
		err, strings.Join(a.inputs(), ", "), strings.Join(a.outputs(), ", "), a.cfg.AppID, a.cfg.AppID, a.cfg.AppID)
}
