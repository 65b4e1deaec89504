package golden

import (
	"maps"
	"slices"
	"testing"
)

// running is how many cases of each group run, out of how many.
var running = map[string][2]int{
	"aggregate":          {13, 13},
	"caching":            {6, 11},
	"cogroup":            {0, 11},
	"combo":              {2, 12},
	"emit-final":         {0, 13},
	"errors":             {6, 17},
	"headers":            {7, 13},
	"hopping":            {0, 7},
	"join-foreign-key":   {0, 14},
	"join-global":        {0, 7},
	"join-stream-stream": {0, 37},
	"join-stream-table":  {11, 14},
	"join-table-table":   {17, 17},
	"optimized":          {0, 1},
	"processor":          {24, 25},
	"session":            {0, 13},
	"sliding":            {0, 11},
	"stateless":          {21, 21},
	"suppress":           {0, 17},
	"table":              {17, 17},
	"table-aggregate":    {11, 11},
	"timestamps":         {8, 12},
	"tumbling":           {0, 13},
	"versioned":          {4, 4},
}

// TestCoverage fails when a case that ran is skipped, and when one that was skipped runs: then
// the number above is to be raised.
func TestCoverage(t *testing.T) {
	got := map[string][2]int{}
	needs := map[string]int{}
	for _, g := range load(t, ownCases) {
		n := [2]int{0, len(g.Cases)}
		for _, c := range g.Cases {
			if _, _, missing, _ := tryBuild(&c); missing != "" {
				needs[missing]++
			} else if differs[c.Name] == "" {
				n[0]++
			}
		}
		got[g.Group] = n
	}
	for _, group := range slices.Sorted(maps.Keys(running)) {
		if got[group] != running[group] {
			t.Errorf("group %s: %d of %d cases run, expected %d of %d", group, got[group][0], got[group][1], running[group][0], running[group][1])
		}
	}
	if len(got) != len(running) {
		t.Errorf("%d groups, expected %d", len(got), len(running))
	}
	for _, what := range slices.Sorted(maps.Keys(needs)) {
		t.Logf("%d cases need %s", needs[what], what)
	}
}
