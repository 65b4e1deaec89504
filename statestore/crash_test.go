package statestore

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/tidemark-streams/tidemark/internal/testseed"
)

// TestCrashAtEveryWrite lets the power fail before every operation that changes the file
// system, from the making of the database on, with none, some or all of the unsynced data
// surviving: what is recovered is the state after one commit, whole, and not before the
// last one that was acknowledged as durable.
func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := &script{commits: 16, big: 3}
	fs := newCrashFS()
	var mu sync.Mutex
	crashes, seen := 0, map[int64]bool{}
	o := memOptions(errorfs.Wrap(fs, onWrite(func(i int64) error {
		mu.Lock()
		defer mu.Unlock()
		if i%every != 0 {
			return nil
		}
		for _, percent := range []int{0, rng.IntN(101)} {
			acked := c.acked.Load()
			clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
			begun := c.begun.Load()
			n, err := c.verify("state/0_0", memOptions(clone))
			if err != nil {
				t.Errorf("write %d, %d %% of unsynced data kept: %v", i, percent, err)
			}
			if n < acked || n > begun {
				t.Errorf("write %d, %d %% kept: recovered commit %d; acknowledged %d, begun %d", i, percent, n, acked, begun)
			}
			crashes++
			seen[n] = true
		}
		return nil
	})))
	must(t, c.run("state/0_0", o))
	t.Logf("%d crashes, %d different commits recovered", crashes, len(seen))
	if crashes < 200/every || len(seen) < c.commits/4 {
		t.Errorf("%d crashes hit %d commits: the script does not write enough", crashes, len(seen))
	}
}

// TestCrashWhileOpening lets the power fail before every write of an Open, and many
// different parts of the unsynced names and data survive: a directory that had a database
// must always have one.
func TestCrashWhileOpening(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := &script{commits: 3}
	fs := newCrashFS()
	must(t, c.run("t", memOptions(fs)))
	var mu sync.Mutex
	crashes := 0
	o := memOptions(errorfs.Wrap(fs, onWrite(func(i int64) error {
		mu.Lock()
		defer mu.Unlock()
		for range 20 / every {
			clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
			if n, err := c.verify("t", memOptions(clone)); err != nil || n != 3 {
				t.Errorf("write %d: recovered commit %d, %v; want 3", i, n, err)
			}
			crashes++
		}
		return nil
	})))
	must(t, openStore(t, "t", o, countsSpec, latestSpec).Close())
	if crashes < 200/every {
		t.Errorf("only %d crashes", crashes)
	}
}

// TestCrashWhileCreating lets the power fail before every write of the first Open, and many
// different parts of the unsynced names and data survive: there is always one that can be opened.
func TestCrashWhileCreating(t *testing.T) {
	t.Parallel()
	rng := testseed.New(t)
	c := &script{commits: 3}
	fs := newCrashFS()
	var mu sync.Mutex
	crashes := 0
	o := memOptions(errorfs.Wrap(fs, onWrite(func(i int64) error {
		mu.Lock()
		defer mu.Unlock()
		for range max(5/every, 1) {
			clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
			if n, err := c.verify("state/t", memOptions(clone)); err != nil || n != 0 {
				t.Errorf("write %d: recovered commit %d, %v", i, n, err)
			}
			crashes++
		}
		return nil
	})))
	must(t, openStore(t, "state/t", o, countsSpec, latestSpec).Close())
	if crashes < 50/every {
		t.Errorf("only %d crashes", crashes)
	}
}
