package main

import (
	"fmt"
	"io"
	"slices"
)

// summary is the medians of one program's runs under one setting.
type summary struct {
	rate, cpu, broker float64
	clean, runs       int
}

// summarise takes the clean runs, and all of them if there is no clean one.
func summarise(all []result, s setting, program string) (m summary) {
	var clean, any []result
	for _, r := range all {
		if r.Program != program || r.Input != s.input.name || r.Guarantee != s.guarantee || r.Client != s.client {
			continue
		}
		any = append(any, r)
		if !r.disturbed() {
			clean = append(clean, r)
		}
	}
	m.clean, m.runs = len(clean), len(any)
	use := clean
	if len(use) == 0 {
		use = any
	}
	m.rate = median(use, func(r result) float64 { return r.Final.RecordsPerSec })
	m.cpu = median(use, func(r result) float64 { return r.Final.CPUPerMillion })
	m.broker = median(use, func(r result) float64 { return r.BrokerPerMillion })
	return m
}

func median(runs []result, value func(result) float64) float64 {
	if len(runs) == 0 {
		return 0
	}
	var v []float64
	for _, r := range runs {
		v = append(v, value(r))
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// table prints a line for each setting.
func table(w io.Writer, settings []setting, all []result) {
	fmt.Fprintln(w, "| keys | guarantee | client | bare: 1000 records/s | count: 1000 records/s | rate | bare: CPU s/M | count: CPU s/M | **CPU** | broker CPU s/M, bare / count | clean runs |")
	fmt.Fprintln(w, "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, s := range settings {
		bare, count := summarise(all, s, "bare"), summarise(all, s, "count")
		fmt.Fprintf(w, "| %s | %s | %s | %.0f | %.0f | %.2f | %.2f | %.2f | **%.2f** | %.2f / %.2f | %d/%d, %d/%d |\n", s.input.name, s.guarantee, s.client,
			bare.rate/1000, count.rate/1000, ratio(count.rate, bare.rate), bare.cpu, count.cpu, ratio(count.cpu, bare.cpu), bare.broker, count.broker,
			bare.clean, bare.runs, count.clean, count.runs)
	}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
