package main

import (
	"testing"
)

// Every variant must count right: run compares the sum of the counts with the updates.
func TestVariantsCount(t *testing.T) {
	w := workload{tasks: 3, updates: 30_000, commit: 1000}
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			if _, err := measure(w, 2000, v, t.TempDir()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestFlagsAreChecked(t *testing.T) {
	if err := (workload{}).validate(); err == nil {
		t.Error("a workload of nothing is valid")
	}
	if err := run(options{workload: workload{tasks: 1, updates: 1, commit: 1}}); err == nil {
		t.Error("0 rounds are valid")
	}
}
