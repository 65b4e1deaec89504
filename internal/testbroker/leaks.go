package testbroker

import (
	"fmt"
	"os"

	"go.uber.org/goleak"

	"github.com/tidemark-streams/tidemark/kafka"
)

// Leaks looks for goroutines that the tests of a package have left behind. Once in a while
// librdkafka never returns from a call: the adapter leaves such a call or client behind and counts it, and it is no leak
// of the tests.
func Leaks() error {
	var ignore []goleak.Option
	if n := kafka.Abandoned(); n > 0 {
		fmt.Fprintf(os.Stderr, "%d clients were abandoned\n", n)
		for _, f := range []string{"(*wire).forward", "(*membership).run", "Dismiss.func1", "endConsumer.func1"} {
			ignore = append(ignore, goleak.IgnoreAnyFunction("github.com/tidemark-streams/tidemark/kafka/confluent."+f))
		}
	}
	return goleak.Find(ignore...)
}
