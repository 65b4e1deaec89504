package testbroker

import (
	"slices"
	"testing"
)

func TestReal(t *testing.T) {
	t.Setenv("TIDEMARK_TEST_BROKERS", "a:1,b:2")
	if b := Real(t); !slices.Equal(b.Addrs, []string{"a:1", "b:2"}) || b.Cluster != nil {
		t.Errorf("broker %+v", b)
	}
	t.Run("none", func(t *testing.T) {
		t.Setenv("TIDEMARK_TEST_BROKERS", "")
		t.Setenv("TIDEMARK_REQUIRE_REAL", "")
		skipped := false
		t.Run("skips", func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			Real(t)
		})
		if !skipped {
			t.Error("without a broker the test is not skipped")
		}
	})
}

func TestEach(t *testing.T) {
	t.Setenv("TIDEMARK_TEST_BROKERS", "a:1")
	embedded, real := 0, 0
	Each(t, func(_ *testing.T, b Broker) {
		if b.Cluster != nil && len(b.Addrs) == 1 {
			embedded++
		} else {
			real++
		}
	})
	if embedded != 1 || real != 1 {
		t.Errorf("ran %d times on an embedded broker and %d times on a real one", embedded, real)
	}
}
