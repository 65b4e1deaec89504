package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark-streams/tidemark/statestore"
	"github.com/tidemark-streams/tidemark/task"
)

// comparison is what the brokers have of an application.
type comparison struct {
	group      kadm.OffsetResponses
	topics     kadm.TopicDetails
	changelogs []internalTopic
	app        string
	// Of the group's topics and of the changelogs.
	starts, ends kadm.ListedOffsets
}

func fetchComparison(ctx context.Context, adm *kadm.Client, app, group string) (*comparison, error) {
	c := &comparison{app: app}
	var err error
	if c.group, err = adm.FetchOffsets(ctx, group); err == nil {
		err = c.group.Error()
	}
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) { // a deleted group has no offsets
		return nil, fmt.Errorf("read the offsets of group %s: %w", group, err)
	}
	if c.topics, err = adm.ListTopics(ctx); err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	var names []string
	c.group.Each(func(o kadm.OffsetResponse) {
		if c.topics.Has(o.Topic) && !slices.Contains(names, o.Topic) {
			names = append(names, o.Topic)
		}
	})
	groups, _ := adm.ListGroups(ctx) // who may not list them has the placement topics to tell applications apart
	for _, t := range newResetPlan(app, c.topics, groups).Topics {
		if strings.HasSuffix(t.Name, changelogSuffix) {
			c.changelogs = append(c.changelogs, t)
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return c, nil
	}
	if c.starts, err = adm.ListStartOffsets(ctx, names...); err == nil {
		c.ends, err = adm.ListEndOffsets(ctx, names...)
	}
	if err == nil {
		err = errors.Join(c.starts.Error(), c.ends.Error())
	}
	if err != nil {
		return nil, fmt.Errorf("read where logs begin and end: %w", err)
	}
	return c, nil
}

const changelogSuffix = "-changelog"

// compare looks at the tasks of this host, at what else the group has offsets of, and at changelogs that nothing tells of.
func (c *comparison) compare(dirs []string) (*offsetsResult, error) {
	r := &offsetsResult{Offsets: []comparedOffset{}, Changelogs: []comparedChangelog{}}
	seen, stored := map[string]map[int32]bool{}, map[string]bool{}
	add := func(x comparedOffset) {
		if seen[x.Topic] == nil {
			seen[x.Topic] = map[int32]bool{}
		}
		seen[x.Topic][x.Partition] = true
		r.Offsets = append(r.Offsets, x)
		r.Conflict = r.Conflict || x.Conflict
	}
	for _, dir := range dirs {
		v, err := statestore.OpenReadOnly(dir, statestore.ReadOptions{Logger: quiet()})
		if err != nil {
			return nil, fmt.Errorf("read the store in %s: %w", dir, err)
		}
		m := v.Metadata()
		if err := v.Close(); err != nil {
			return nil, err
		}
		for _, p := range m.Positions {
			x := c.ofStore(p, m.CommitID)
			x.Task = filepath.Base(dir)
			add(x)
			for _, s := range m.Stores {
				stored[fmt.Sprint(task.ChangelogTopic(c.app, s.Spec.Name), p.Partition)] = !m.CommitID.IsZero()
			}
		}
	}
	for _, o := range c.group.Sorted() {
		if o.At >= 0 && !seen[o.Topic][o.Partition] {
			add(c.withoutStore(o))
		}
	}
	for _, t := range c.changelogs {
		for p := range int32(t.Partitions) {
			// With a store here the offsets that it lacks are told above.
			if x, ok := c.ofChangelog(t.Name, p); ok && !(x.Conflict && stored[fmt.Sprint(t.Name, p)]) {
				r.Changelogs = append(r.Changelogs, x)
				r.Conflict = r.Conflict || x.Conflict
			}
		}
	}
	return r, nil
}

// ofStore says how a position of a store and the group's offset are to each other.
func (c *comparison) ofStore(p statestore.Position, id statestore.CommitID) comparedOffset {
	x := comparedOffset{Topic: p.Topic, Partition: p.Partition, Store: &p.Next, StoreID: id.String()}
	o, ok := c.group.Lookup(p.Topic, p.Partition)
	if !ok || o.At < 0 {
		x.State, x.Conflict = "the group has no offset", true
		return x
	}
	x.Group = &o.At
	g, err := task.DecodeMetadata(o.Metadata)
	if err == nil {
		x.GroupID = g.ID.String()
	}
	switch n := id.Compare(g.ID); {
	case err != nil && id.IsZero():
		x.State = "both are another program's: taken over at the next start"
	case err != nil:
		x.State, x.Conflict = "the group's offset is not the application's own", true
	case n > 0:
		x.State, x.Conflict = "the store is ahead", true
	case n < 0:
		x.State = "the group is ahead: the next start brings the store up to it"
	default:
		x.State = "equal"
	}
	if !x.Conflict {
		c.lookAtLog(&x, o.Offset, g)
		x.acceptOnly = x.acceptOnly && p.Next < c.start(x.Topic, x.Partition)
	}
	return x
}

// withoutStore says whether an offset can be gone on at without what this host has.
func (c *comparison) withoutStore(o kadm.OffsetResponse) comparedOffset {
	x := comparedOffset{Topic: o.Topic, Partition: o.Partition, Group: &o.At, State: "this host has no store of it"}
	g, err := task.DecodeMetadata(o.Metadata)
	if err == nil {
		x.GroupID = g.ID.String()
	}
	if c.left(o.Offset, g) {
		x.State = "the task does not read it any more"
		return x
	}
	c.lookAtLog(&x, o.Offset, g)
	x.acceptOnly = true
	return x
}

// lookAtLog finds what is the matter between an offset, those beside it and the log.
func (c *comparison) lookAtLog(x *comparedOffset, o kadm.Offset, g task.Metadata) {
	start := c.start(o.Topic, o.Partition)
	switch topic, here := c.topics[o.Topic]; {
	case !here:
		x.State = "the topic does not exist"
	case named(g.Sources, o.Topic) && topicHash(g.Sources, o.Topic) != task.HashTopicID(topic.ID):
		x.State, x.Conflict = "the topic was deleted and created again", true
	case start > o.At:
		x.State, x.Conflict, x.acceptOnly = fmt.Sprintf("%d records are gone: the log begins at %d", start-o.At, start), true, true
	default:
		c.others(o, func(other kadm.Offset, m task.Metadata, own bool) {
			if named(g.Sources, other.Topic) && (!own || named(m.Sources, o.Topic) && m.ID != g.ID) {
				x.State, x.Conflict = fmt.Sprintf("the task's offset of %s-%d is of another commit", other.Topic, other.Partition), true
			}
		})
	}
}

// left tells whether an offset was left by an input that was taken out of the topology: those beside it went on without it.
func (c *comparison) left(o kadm.Offset, g task.Metadata) (left bool) {
	c.others(o, func(other kadm.Offset, m task.Metadata, own bool) {
		left = left || own && named(g.Sources, other.Topic) && !named(m.Sources, o.Topic) && m.ID.Compare(g.ID) > 0
	})
	return left
}

// others gives the group's other offsets of a partition; own tells whether Tidemark wrote them.
func (c *comparison) others(o kadm.Offset, f func(other kadm.Offset, m task.Metadata, own bool)) {
	for _, x := range c.group.Sorted() {
		if x.Partition != o.Partition || x.Topic == o.Topic || x.At < 0 {
			continue
		}
		m, err := task.DecodeMetadata(x.Metadata)
		f(x.Offset, m, err == nil)
	}
}

func (c *comparison) start(topic string, partition int32) int64 {
	l, _ := c.starts.Lookup(topic, partition)
	return l.Offset
}

// ofChangelog finds a changelog that holds records though no offset of its task names the store.
func (c *comparison) ofChangelog(topic string, partition int32) (x comparedChangelog, ok bool) {
	end, _ := c.ends.Lookup(topic, partition)
	x = comparedChangelog{Topic: topic, Partition: partition, Start: c.start(topic, partition), End: end.Offset}
	if x.Start >= x.End {
		return x, false
	}
	store := strings.TrimSuffix(strings.TrimPrefix(topic, c.app+"-"), changelogSuffix)
	known, some := false, false
	c.others(kadm.Offset{Topic: topic, Partition: partition}, func(_ kadm.Offset, m task.Metadata, own bool) {
		known, some = known || !own || named(m.Stores, store), true
	})
	if x.State = "the group has no offsets of the partition, but the changelog holds records"; some {
		x.State = "no offset of the group names the store: a conflict if the application has it"
	}
	x.Conflict = !some
	return x, !known
}

func named(list []task.Covered, name string) bool {
	return slices.ContainsFunc(list, func(c task.Covered) bool { return c.Name == task.HashName(name) })
}

// topicHash is that of a name that the list has.
func topicHash(list []task.Covered, name string) uint32 {
	i := slices.IndexFunc(list, func(c task.Covered) bool { return c.Name == task.HashName(name) })
	return list[i].Topic
}
