package streams

import (
	"testing"

	"github.com/tidemark-streams/tidemark/statestore"
)

func TestCacheBudgetOfTheApp(t *testing.T) {
	a := &App{cfg: Config{Store: StoreConfig{Resources: statestore.SmallContainer()}}}
	budget := func() int64 {
		t.Helper()
		if _, err := a.openResources(); err != nil {
			t.Fatal(err)
		}
		n := a.StoreStats().Cache.BudgetBytes
		if err := a.closeResources(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := budget(); n != statestore.SmallContainer().CacheBytes {
		t.Errorf("budget of a small container: %d", n)
	}
	a.cfg.Store.CacheBytes = 5 << 20
	if n := budget(); n != 5<<20 {
		t.Errorf("with CacheBytes of 5 MiB: %d", n)
	}
	a.SetCacheBytes(7 << 20)
	a.SetCacheBytes(0) // nothing happens
	if n := budget(); n != 7<<20 {
		t.Errorf("set to 7 MiB before Run: %d", n)
	}
	if s := a.StoreStats(); s.Cache.BudgetBytes != 0 {
		t.Errorf("after Run: %+v", s)
	}
	if _, err := a.openResources(); err != nil {
		t.Fatal(err)
	}
	a.SetCacheBytes(9 << 20)
	if n := a.StoreStats().Cache.BudgetBytes; n != 9<<20 {
		t.Errorf("set to 9 MiB while it runs: %d", n)
	}
	if err := a.closeResources(); err != nil {
		t.Fatal(err)
	}
}
