package main

import (
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/benchmarks/internal/report"
)

func aRun(program string, rate, cpu, other float64) result {
	return result{Program: program, Input: "10k", Guarantee: "exactly-once", Client: "franz", Other: other,
		Final: report.Final{RecordsPerSec: rate, CPUPerMillion: cpu}, BrokerPerMillion: cpu / 2}
}

func TestTable(t *testing.T) {
	s := setting{input{"10k", "in"}, "exactly-once", "franz"}
	all := []result{
		aRun("bare", 1_500_000, 0.7, 0), aRun("bare", 1_000_000, 0.9, 0.02), aRun("bare", 10, 90, 0.5), // the disturbed one does not count
		aRun("count", 900_000, 1.2, 0.3), // all there is
		{Program: "count", Input: "1m", Guarantee: "exactly-once", Client: "franz"},
	}
	var out strings.Builder
	table(&out, []setting{s}, all)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	if want := "| 10k | exactly-once | franz | 1250 | 900 | 0.72 | 0.80 | 1.20 | **1.50** | 0.40 / 0.60 | 2/3, 0/1 |"; lines[2] != want {
		t.Errorf("line\n%s\nwant\n%s", lines[2], want)
	}
	for _, line := range lines {
		if strings.Count(line, "|") != strings.Count(lines[0], "|") {
			t.Errorf("columns of %s", line)
		}
	}
}

func TestInputs(t *testing.T) {
	var in inputs
	for _, bad := range []string{"", "a", "=a", "a="} {
		if err := in.Set(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if err := in.Set("10k=topic"); err != nil || len(in) != 1 || in[0] != (input{"10k", "topic"}) {
		t.Errorf("%v, %v", in, err)
	}
}
