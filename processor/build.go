package processor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Build checks the topology and divides it into sub-topologies. It reports every problem at
// once, each with the names of the nodes. It may be called again; nothing may be added after
// it has succeeded.
func (t *Topology) Build() error {
	if t.subs != nil {
		return wrap(t.problems)
	}
	problems := slices.Clone(t.problems)
	fail := func(format string, a ...any) { problems = append(problems, fmt.Errorf(format, a...)) }
	if len(t.nodes) == 0 && len(problems) == 0 {
		fail("it is empty: it has no source")
	}
	for _, n := range t.nodes {
		n.children = nil
	}
	for _, n := range t.nodes {
		t.linkParents(n, fail)
	}
	t.checkCycles(fail)
	t.checkNames(fail)
	if err := wrap(problems); err != nil {
		return err
	}
	t.subs = t.divide()
	return nil
}

func wrap(problems []error) error {
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	return nil
}

// linkParents makes n a child of its parents. That every node hangs on a source needs no
// check of its own: going up from parent to parent ends at a source, at a problem told
// here, or in a cycle.
func (t *Topology) linkParents(n *node, fail func(string, ...any)) {
	for _, name := range n.parents {
		p := t.byName[name]
		switch {
		case p == nil:
			fail("%v is not connected: its parent %s does not exist", n, name)
		case p.kind == sinkKind:
			fail("%v: its parent %s is a sink, which forwards nothing", n, name)
		case p.out != n.in:
			fail("%v takes records of %s, but its parent %s forwards %s", n, pair(n.in), name, pair(p.out))
		case slices.Contains(p.children, n):
			fail("%v: its parent %s is named twice", n, name)
		default:
			p.children = append(p.children, n)
		}
	}
}

func pair[T any](types [2]T) string { return fmt.Sprintf("[%v, %v]", types[0], types[1]) }

// checkCycles walks the graph depth first; a node met again on the way down closes a cycle.
func (t *Topology) checkCycles(fail func(string, ...any)) {
	const onPath, done = 1, 2
	state := map[*node]int{}
	var path []string
	var walk func(n *node) bool
	walk = func(n *node) bool {
		switch state[n] {
		case done:
			return true
		case onPath:
			from := slices.Index(path, n.name)
			fail("the nodes form a cycle: %s -> %s; a loop is made through a topic", strings.Join(path[from:], " -> "), n.name)
			return false
		}
		state[n] = onPath
		path = append(path, n.name)
		for _, c := range n.children {
			if !walk(c) {
				return false
			}
		}
		path = path[:len(path)-1]
		state[n] = done
		return true
	}
	for _, n := range t.nodes {
		if !walk(n) {
			return
		}
	}
}

// checkNames: whatever becomes a topic must be able to. Stores are checked whole.
func (t *Topology) checkNames(fail func(string, ...any)) {
	for _, n := range t.nodes {
		for _, topic := range n.topics {
			if err := CheckName(topic); err != nil {
				fail("%v: topic %w", n, err)
			}
		}
		if n.topic != "" {
			if err := CheckName(n.topic); err != nil {
				fail("%v: topic %w", n, err)
			}
		}
	}
	for _, s := range t.stores {
		if err := CheckName(s.def.Name); err != nil {
			fail("processor %s: store %w (its changelog is named after it)", s.users[0].name, err)
		}
		if err := s.def.check(); err != nil {
			fail("processor %s: store %s: %w", s.users[0].name, s.def.Name, err)
		}
	}
}

// maxName is the length of the longest topic name that Kafka takes.
const maxName = 249

// CheckName applies Kafka's rule for names of topics, which is also that for stores and for
// the names given to operators: 1 to 249 letters, digits, '.', '_' and '-', and not "." or
// "..". The error begins with the name.
func CheckName(s string) error {
	switch {
	case s == "":
		return errors.New(`"" is not a name`)
	case s == "." || s == "..":
		return fmt.Errorf("%q is not a name", s)
	case len(s) > maxName:
		return fmt.Errorf("%q is not a name: it has %d characters, and %d are the most", s, len(s), maxName)
	}
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return fmt.Errorf("%q is not a name: only letters, digits, '.', '_' and '-' may be used", s)
		}
	}
	return nil
}
