package testbroker

import (
	"hash/fnv"
	"os"
	"strings"
	"testing"
)

// Full tells whether every combination of client, broker and guarantee is to be tested, as often as makes sense:
// TIDEMARK_TEST_FULL is not empty.
func Full() bool { return os.Getenv("TIDEMARK_TEST_FULL") != "" }

// Half tells whether one of two combinations is to be tested, those with an even sum of their indexes, or both, which [Full] says.
func Half(sum int) bool { return Full() || sum%2 == 0 }

// HasReal tells whether there is a real broker, see [Real].
func HasReal() bool { return os.Getenv("TIDEMARK_TEST_BROKERS") != "" }

// Takes tells whether a test takes the i-th client to the j-th of the [Kinds] of brokers: each client to one of them, two clients
// to both. Which goes where changes from test to test, so that all combinations are seen. Every combination is
// taken with [Full], and where there is no real broker, whose share would be lost.
func Takes(t testing.TB, i, j int) bool { return !HasReal() || Half(Turn(t)+i+j) }

// Turn gives a number that belongs to a test's name, the same one for its subtests.
func Turn(t testing.TB) int {
	name, _, _ := strings.Cut(t.Name(), "/")
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return int(h.Sum32() >> 1)
}
