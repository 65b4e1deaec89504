package streams

import (
	"slices"
	"strconv"

	"github.com/tidemark-streams/tidemark/processor"
)

// BranchedKStream is a stream that is being split into branches. See [KStream.Split].
type BranchedKStream[K, V any] struct {
	in         *KStream[K, V]
	node       *graphNode
	branches   []branch[K, V]
	hasDefault bool
	otherwise  string // the default branch
}

type branch[K, V any] struct {
	takes func(K, V) bool
	child string
}

// Split gives each record to the first branch that takes it:
//
//	sizes := orders.Split()
//	large := sizes.Branch(isLarge)
//	rest := sizes.DefaultBranch()
//
// The names of branches begin with the name of the split.
func (s *KStream[K, V]) Split(named ...Named) *BranchedKStream[K, V] {
	out := &BranchedKStream[K, V]{in: s}
	name := s.b.nodeName("KSTREAM-BRANCH-", named)
	out.node = s.b.hang(&graphNode{name: name, write: func(t *processor.Topology, parents []string) {
		// The branches of now: a topology that is built does not change with the program.
		now := splitter[K, V]{slices.Clone(out.branches), out.hasDefault, out.otherwise}
		processor.AddProcessor(t, name, func() *splitter[K, V] { p := now; return &p }, parents)
	}}, s.node)
	return out
}

// Branch gives the records for which takes is true and that no earlier branch took. Records
// that takes cannot be called with, because their value is a null of a type without
// nil, go to the default branch.
func (s *BranchedKStream[K, V]) Branch(takes func(K, V) bool, named ...Named) *KStream[K, V] {
	out := s.hang(strconv.Itoa(len(s.branches)+1), named)
	s.in.b.checkFunction(out.node.name, takes == nil)
	s.branches = append(s.branches, branch[K, V]{takes, out.node.name})
	return out
}

// DefaultBranch gives the records that no branch took, whenever that was added. Without it
// they go nowhere.
func (s *BranchedKStream[K, V]) DefaultBranch(named ...Named) *KStream[K, V] {
	out := s.hang("0", named)
	if s.hasDefault {
		s.in.b.problem("%s has two default branches, %s and %s", s.node.name, s.otherwise, out.node.name)
	}
	s.hasDefault, s.otherwise = true, out.node.name
	return out
}

func (s *BranchedKStream[K, V]) hang(suffix string, named []Named) *KStream[K, V] {
	if given := s.in.b.given("KSTREAM-BRANCH-", named); given != "" {
		suffix = given
	}
	s.in.b.generated("")
	return s.in.then(hangProcessor(s.in.b, s.node.name+suffix, newPass[K, V], []*graphNode{s.node}))
}

type splitter[K, V any] struct {
	branches   []branch[K, V]
	hasDefault bool
	otherwise  string
}

// Process forwards r to one branch.
func (p *splitter[K, V]) Process(ctx processor.Context[K, V], r processor.Record[K, V]) error {
	if missing(&r) == "" {
		for _, b := range p.branches {
			if b.takes(r.Key, r.Value) {
				return ctx.ForwardTo(b.child, r)
			}
		}
	}
	if p.hasDefault {
		return ctx.ForwardTo(p.otherwise, r)
	}
	return nil
}
