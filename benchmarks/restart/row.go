package main

import (
	"fmt"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/watch"
)

const header = "| keys | to the first commit | the broker's waits: group, open transaction | **the rest** | restored | largest interval before | 1000 records/s before | 70 % of it after, less the waits |\n" +
	"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"

// goOn is the part of the earlier rate that the application is to reach.
const goOn = 0.7

// row is a line of the table: a life, and the one after its death.
func row(name string, before, after lived) string {
	commit, n := after.firstCommit()
	group := after.first(watch.Joined) - after.first(watch.Joining)
	fence := after.first(watch.Fenced) - after.first(watch.Fencing)
	waits := union(after.first(watch.Joining), after.first(watch.Joined), after.first(watch.Fencing), after.first(watch.Fenced))
	steady := before.steady()
	return fmt.Sprintf("| %s | %.0f ms | %.0f, %.0f ms | **%.0f ms** | %d | %d | %.0f | %.0f ms |", name, commit, group, fence, commit-waits,
		n.Restored, before.interval(), steady/1000, after.reaches(goOn*steady)-waits)
}

// union is the length of two stretches of time together, which may overlap.
func union(a, b, c, d float64) float64 {
	return (b - a) + (d - c) - max(0, min(b, d)-max(a, c))
}
