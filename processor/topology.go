package processor

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/tidemark-streams/tidemark/serde"
)

// Topology is a graph of sources, processors, sinks and the stores connected to them. The
// DSL of package streams builds one; [AddSource], [AddProcessor] and [AddSink] build one by
// hand. Problems are collected and reported together by [Topology.Build].
type Topology struct {
	nodes    []*node // in the order of addition
	byName   map[string]*node
	stores   []*store
	internal map[string]InternalTopic // by name within the topology
	problems []error
	subs     []*Subtopology // set by Build

	copartitions [][]string // nodes whose topics have the same number of partitions
}

type nodeKind uint8

const (
	sourceKind nodeKind = iota
	processorKind
	sinkKind
)

var kindNames = [...]string{"source", "processor", "sink"}

// node is one node of the graph, without its types but for their descriptions.
type node struct {
	name     string
	kind     nodeKind
	topics   []string // source: what it reads
	topic    string   // sink: where it writes
	parents  []string
	children []*node // set by Build
	stores   []string
	byKey    []string        // of them, those that are read with each record's key
	in, out  [2]reflect.Type // key and value; in of a source and out of a sink are nil
	// make builds the node's runtime form in an instance; its children exist already.
	make func(in *Instance, n *node) (any, error)
}

// String names the node and its kind, for messages.
func (n *node) String() string { return kindNames[n.kind] + " " + n.name }

// store is a declared store. A store is there because a processor uses it.
type store struct {
	def   Definition
	users []*node
}

// InternalTopic is a topic that the application creates for itself: its name is prefixed
// with the application id.
type InternalTopic struct {
	// Name without the prefix, such as counts-repartition.
	Name string
	// Partitions is 0 when it follows from the sub-topology that writes it.
	Partitions int32
}

// NewTopology gives an empty topology.
func NewTopology() *Topology {
	return &Topology{byName: map[string]*node{}, internal: map[string]InternalTopic{}}
}

func (t *Topology) problem(format string, a ...any) {
	t.problems = append(t.problems, fmt.Errorf(format, a...))
}

func typesOf[K, V any]() [2]reflect.Type {
	return [2]reflect.Type{reflect.TypeFor[K](), reflect.TypeFor[V]()}
}

func (t *Topology) add(n *node) {
	if t.subs != nil {
		t.problem("%v: added after Build", n)
		return
	}
	if n.name == "" {
		t.problem("a %s has no name", kindNames[n.kind])
		return
	}
	if old := t.byName[n.name]; old != nil {
		t.problem("two nodes have the name %s: a %s and a %s", n.name, kindNames[old.kind], kindNames[n.kind])
		return
	}
	t.byName[n.name] = n
	t.nodes = append(t.nodes, n)
}

// AddSource adds a node that reads topics and decodes their records. A topic is read by one
// source; use that node as often as needed.
func AddSource[K, V any](t *Topology, name string, key serde.Serde[K], value serde.Serde[V], topics ...string) {
	n := &node{name: name, kind: sourceKind, topics: unique(topics), out: typesOf[K, V](), make: func(in *Instance, n *node) (any, error) {
		return newSourceNode(in, n, key, value)
	}}
	if len(topics) == 0 {
		t.problem("%v reads no topic", n)
	}
	t.checkSerdes(n, key == nil, value == nil)
	for _, old := range t.nodes {
		for _, topic := range n.topics {
			if old.kind == sourceKind && slices.Contains(old.topics, topic) {
				t.problem("topic %s is read by two sources, %s and %s; read it once and use that node twice", topic, old.name, name)
			}
		}
	}
	t.add(n)
}

func unique(topics []string) []string {
	var once []string
	for _, topic := range topics {
		if !slices.Contains(once, topic) {
			once = append(once, topic)
		}
	}
	return once
}

// AddProcessor adds a processor behind its parents, which may be added later, and connects
// stores to it. newProcessor is called once for each task and must give a new processor each
// time: tasks run on several goroutines. It is also called, and what it gives thrown away,
// when the topology is built; so it opens nothing ([Initer] does).
func AddProcessor[KIn, VIn, KOut, VOut any, P Processor[KIn, VIn, KOut, VOut]](t *Topology, name string, newProcessor func() P, parents []string, stores ...StoreDef) {
	addProcessor(t, name, newProcessor, func(p P) Processor[KIn, VIn, KOut, VOut] { return p }, parents, stores)
}

// addProcessor adds a node that runs what run makes of the user's processor.
func addProcessor[KIn, VIn, KOut, VOut any, P Processor[KIn, VIn, KOut, VOut]](t *Topology, name string, newProcessor func() P, run func(P) Processor[KIn, VIn, KOut, VOut], parents []string, stores []StoreDef) {
	n := &node{name: name, kind: processorKind, parents: slices.Clone(parents), in: typesOf[KIn, VIn](), out: typesOf[KOut, VOut](), make: func(in *Instance, n *node) (any, error) {
		return newProcessorNode(in, n, run(newProcessor()))
	}}
	t.checkParents(n)
	if newProcessor == nil {
		t.problem("%v: the function that makes it is nil", n)
	} else {
		p, other := newProcessor(), newProcessor()
		if what := notFresh(p, other); what != "" {
			t.problem("%v: the function that makes it %s", n, what)
		}
		checkInit[KOut, VOut](t, n, p)
	}
	t.add(n)
	for _, d := range stores {
		t.connect(n, d)
	}
}

// checkInit finds an Init that would never be called because its type is not that of Initer.
func checkInit[KOut, VOut any](t *Topology, n *node, p any) {
	if _, ok := p.(Initer[KOut, VOut]); ok || p == nil {
		return
	}
	if m, ok := reflect.TypeOf(p).MethodByName("Init"); ok {
		t.problem("%v: its method Init is %v, but it has to be func(processor.Context[%v, %v]) error to be called", n, m.Type, n.out[0], n.out[1])
	}
}

// notFresh looks at what a constructor gave in two calls. Only pointers can be the same
// thing twice; all pointers to nothing are equal.
func notFresh(a, b any) string {
	v := reflect.ValueOf(a)
	if !v.IsValid() {
		return "gives nil"
	}
	if v.Kind() == reflect.Pointer && v.Type().Elem().Size() > 0 && a == b {
		return "gives the same one twice; it must make a new one for each task, which may run on another goroutine"
	}
	return ""
}

// AddSink adds a node that encodes records and writes them to a topic.
func AddSink[K, V any](t *Topology, name, topic string, key serde.Serde[K], value serde.Serde[V], parents ...string) {
	n := &node{name: name, kind: sinkKind, topic: topic, parents: slices.Clone(parents), in: typesOf[K, V](), make: func(in *Instance, n *node) (any, error) {
		return newSinkNode(in, n, key, value)
	}}
	t.checkParents(n)
	t.checkSerdes(n, key == nil, value == nil)
	if topic == "" {
		t.problem("%v has no topic", n)
	}
	t.add(n)
}

func (t *Topology) checkParents(n *node) {
	if len(n.parents) == 0 {
		t.problem("%v is not connected: it has no parent", n)
	}
}

func (t *Topology) checkSerdes(n *node, noKey, noValue bool) {
	if noKey {
		t.problem("%v: the serde of its keys is nil", n)
	}
	if noValue {
		t.problem("%v: the serde of its values is nil", n)
	}
}

// AddInternalTopic declares a topic that the application creates for itself. Sinks and
// sources name it without the application's prefix.
func (t *Topology) AddInternalTopic(topic InternalTopic) {
	if old, ok := t.internal[topic.Name]; ok && old != topic {
		t.problem("internal topic %s is declared twice, with %d and with %d partitions (0: as many as its input)", topic.Name, old.Partitions, topic.Partitions)
	}
	t.internal[topic.Name] = topic
}

// Connect connects a store to a processor that was added before.
func (t *Topology) Connect(processor string, def StoreDef) {
	n := t.byName[processor]
	if n == nil || n.kind != processorKind {
		t.problem("store %s: there is no processor %s to connect it to", def.Definition().Name, processor)
		return
	}
	t.connect(n, def)
}

func (t *Topology) connect(n *node, d StoreDef) {
	if d == nil {
		t.problem("%v: one of its stores is nil", n)
		return
	}
	def := d.Definition()
	if def.Name == "" {
		t.problem("%v: one of its stores has no name", n)
		return
	}
	s := t.store(def, n)
	if !slices.Contains(s.users, n) {
		s.users = append(s.users, n)
		n.stores = append(n.stores, def.Name)
	}
}

// store finds or declares a store. Two declarations of one name are one store if they agree:
// that is how processors share it.
func (t *Topology) store(def Definition, user *node) *store {
	for _, s := range t.stores {
		if s.def.Name != def.Name {
			continue
		}
		if s.def != def {
			t.problem("store %s is declared twice: as %v for %s and as %v for %s", def.Name, s.def, s.users[0].name, def, user.name)
		}
		return s
	}
	s := &store{def: def}
	t.stores = append(t.stores, s)
	return s
}

// AddProblem adds what a builder of topologies found wrong to what [Topology.Build] reports.
func (t *Topology) AddProblem(err error) { t.problems = append(t.problems, err) }
