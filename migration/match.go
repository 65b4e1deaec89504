package migration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-streams/tidemark/internal/offsetfile"
)

// storesOf gives the stores whose changelog the line's topic is, or why there is none.
func (p *taskPlan) storesOf(l offsetfile.Line) (stores []string, how string) {
	if stores := p.o.Map[l.Topic]; len(stores) > 0 {
		return stores, ""
	}
	if store, ok := p.convention(l.Topic); ok {
		return []string{store}, ""
	}
	if store, ok := p.reader(l); ok {
		return []string{store}, "the only store without a changelog of its own, and it reads this topic"
	}
	return nil, fmt.Sprintf("%s is not %s<store>-changelog, and no store is mapped to it", l.Topic, p.prefix())
}

// prefix is how the names of the internal topics begin.
func (p *taskPlan) prefix() string {
	if p.id.topology == "" {
		return p.app.id + "-"
	}
	return p.app.id + "-" + p.id.topology + "-"
}

// convention takes the store out of the changelog's name.
func (p *taskPlan) convention(topic string) (store string, ok bool) {
	rest, ok1 := strings.CutPrefix(topic, p.prefix())
	store, ok2 := strings.CutSuffix(rest, "-changelog")
	return store, ok1 && ok2 && isTopicName(topic) && store != ""
}

// changelogOf is the reverse: the topic that logs the store.
func (p *taskPlan) changelogOf(store string) string {
	for _, topic := range slices.Sorted(maps.Keys(p.o.Map)) {
		if slices.Contains(p.o.Map[topic], store) {
			return topic
		}
	}
	return p.prefix() + store + "-changelog"
}

// isTopicName is Kafka's rule.
func isTopicName(name string) bool {
	if name == "" || len(name) > 249 {
		return false
	}
	for _, r := range name {
		legal := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
		if !legal {
			return false
		}
	}
	return true
}

// reader finds the store of a source topic that is its own changelog, without a map: every
// line of a .checkpoint belongs to a logged store on disk, so when exactly one store is left
// without a line, and its .position says that it reads this topic, it is that store. A store
// whose data can be taken over is not matched like this: there a wrong guess would cost data.
func (p *taskPlan) reader(l offsetfile.Line) (store string, ok bool) {
	if len(p.left) != 1 {
		return "", false
	}
	for store, movable := range p.left {
		reads := slices.ContainsFunc(p.seen[store], func(s offsetfile.Line) bool { return s.Topic == l.Topic && s.Partition == l.Partition })
		return store, reads && !movable
	}
	return "", false
}

// storesLeft are the stores on disk without a line, and whether their data can be taken over.
func (p *taskPlan) storesLeft() map[string]bool {
	left := map[string]bool{}
	if p.id.global {
		return left
	}
	for _, d := range p.stores {
		left[d.store] = d.readable() || p.o.Sources[d.store] != nil
	}
	for store := range p.seen {
		left[store] = left[store] || p.o.Sources[store] != nil
	}
	maps.DeleteFunc(left, func(store string, _ bool) bool { return p.hasLine(store) })
	return left
}

// hasLine tells whether a line of the .checkpoint is the store's by map or by name.
func (p *taskPlan) hasLine(store string) bool {
	return len(p.own[store]) > 0 || slices.ContainsFunc(p.lines, func(l offsetfile.Line) bool {
		name, ok := p.convention(l.Topic)
		return ok && name == store || slices.Contains(p.o.Map[l.Topic], store)
	})
}
