package streams

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tidemark-streams/tidemark/processor"
)

// Named gives an operator's node a name of its own, as the operator's last argument:
//
//	lines.Filter(isLong, streams.Named("long-lines"))
//
// A name has 1 to 249 letters, digits, '.', '_' and '-', and is unique in the topology. The
// operators that take the records' serdes are named there: see [Serdes.Named].
type Named string

// generated gives the next generated name. The form and the counter, which counts for a named
// operator too, are those of Kafka Streams.
func (b *Builder) generated(prefix string) string {
	b.index++
	return fmt.Sprintf("%s%010d", prefix, b.index-1)
}

// nodeName gives an operator's name: the one it was given, or a generated one. The counter
// goes on in both cases.
func (b *Builder) nodeName(prefix string, named []Named) string {
	name := b.generated(prefix)
	if given := b.given(prefix, named); given != "" {
		return given
	}
	return name
}

// given gives the name that the user gave, "" if none, and checks it.
func (b *Builder) given(prefix string, named []Named) string {
	operator := strings.TrimSuffix(prefix, "-")
	switch len(named) {
	case 0:
		return ""
	case 1:
		if err := processor.CheckName(string(named[0])); err != nil {
			b.problem("name of a %s: %w", operator, err)
		}
	default:
		b.problem("a %s has %d names: %v", operator, len(named), named)
	}
	return string(named[0])
}

// storeName gives a store's name; a given one does not move the counter.
func (b *Builder) storeName(prefix, given string) string {
	if given == "" {
		return b.generated(prefix + "STATE-STORE-")
	}
	return given
}

const repartitionSuffix = "-repartition"

// generatedName recognises what [Builder.generated] makes, as Kafka Streams does.
var generatedName = regexp.MustCompile(`^KSTREAM.*-[0-9]{10}$`)

// repartitionNames are a repartition topic and its three nodes.
type repartitionNames struct{ topic, filter, sink, source string }

// repartitionNames gives the names for a topic with a prefix. The counter goes on by three in
// any case.
func (b *Builder) repartitionNames(prefix string) repartitionNames {
	n := repartitionNames{topic: strings.TrimSuffix(prefix, repartitionSuffix) + repartitionSuffix}
	n.sink = b.generated("KSTREAM-SINK-")
	n.filter = b.generated("KSTREAM-FILTER-")
	n.source = b.generated("KSTREAM-SOURCE-")
	if !generatedName.MatchString(prefix) {
		n.sink, n.filter, n.source = n.topic+"-sink", n.topic+"-filter", n.topic+"-source"
	}
	return n
}
