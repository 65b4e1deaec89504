package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metric is one metric of this package.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// all are the metrics of this package, in the order in which they are described.
var all []*metric

func gauge(name, help string, labels ...string) *metric {
	return define(prometheus.GaugeValue, name, help, labels)
}

func counter(name, help string, labels ...string) *metric {
	return define(prometheus.CounterValue, name, help, labels)
}

func define(kind prometheus.ValueType, name, help string, labels []string) *metric {
	m := &metric{desc: prometheus.NewDesc("tidemark_"+name, help, labels, nil), kind: kind}
	all = append(all, m)
	return m
}

// collection sends the metrics of one snapshot.
type collection chan<- prometheus.Metric

func (c collection) add(m *metric, value float64, labels ...string) {
	c <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

func (c collection) count(m *metric, value int64, labels ...string) {
	c.add(m, float64(value), labels...)
}

// one sets the series of the state that is to 1, those of the others to 0.
func (c collection) one(m *metric, is string, states []string) {
	for _, s := range states {
		value := 0.0
		if s == is {
			value = 1
		}
		c.add(m, value, s)
	}
}

// collector is what New and NewHost give. collect reads one snapshot.
type collector struct{ collect func(collection) }

// Describe sends the descriptions of all metrics.
func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range all {
		to <- m.desc
	}
}

// Collect sends the metrics of the present moment.
func (c collector) Collect(to chan<- prometheus.Metric) { c.collect(to) }
