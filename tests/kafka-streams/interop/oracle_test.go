package interop

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-streams/tidemark/kafka"
)

// partitions is how many every topic of the application has.
const partitions = 2

// entry is what a key has at the end of a topic.
type entry struct {
	Partition int32
	Value     string // bytes
	Null      bool
	Time      int64
}

// oracle does what the application does, by hand.
type oracle struct {
	// what the changelogs of the stores, and the two outputs, hold at their end
	counts, plain, stamped, countsOut, historiesOut map[string]entry
	keeping
	// words is how often each word came, histories what each key put out, in order
	words     map[string]int64
	histories map[string][]string
	// shift is by how much, in milliseconds, the timestamps of the second input are set back.
	shift int64
	// times is the largest timestamp of each partition of the inputs and the repartition topic
	times map[partition]int64
}

func newOracle() *oracle {
	return &oracle{counts: map[string]entry{}, plain: map[string]entry{}, stamped: map[string]entry{}, countsOut: map[string]entry{}, historiesOut: map[string]entry{},
		keeping: newKeeping(), words: map[string]int64{}, histories: map[string][]string{}, shift: shiftBy, times: map[partition]int64{}}
}

// line counts the words of a record of the first input.
func (o *oracle) line(e *env, r *kgo.Record) {
	ts := r.Timestamp.UnixMilli()
	o.time(partition{e.words, r.Partition}, ts)
	for _, w := range strings.Fields(string(r.Value)) {
		p := kafka.Partition([]byte(w), partitions)
		o.time(partition{e.repartition(), p}, ts)
		o.words[w]++
		number := binary.BigEndian.AppendUint64(nil, uint64(o.words[w]))
		o.counts[w] = entry{Partition: p, Value: string(number), Time: max(ts, o.counts[w].Time)}
		o.countsOut[w] = o.counts[w]
	}
}

// pair keeps the history of a key of the second input.
func (o *oracle) pair(e *env, r *kgo.Record) {
	o.time(partition{e.pairs, r.Partition}, r.Timestamp.UnixMilli())
	key, ts := string(r.Key), r.Timestamp.UnixMilli()-o.shift
	if r.Value == nil {
		gone := entry{Partition: r.Partition, Null: true, Time: ts}
		o.plain[key], o.stamped[key], o.historiesOut[key] = gone, gone, gone
		o.histories[key] = append(o.histories[key], "null")
		return
	}
	history, stamp := string(r.Value), ts/2
	if had, ok := o.stamped[key]; ok && !had.Null {
		history, stamp = had.Value+","+history, had.Time+1
	}
	o.plain[key] = entry{Partition: r.Partition, Value: history, Time: ts}
	o.stamped[key] = entry{Partition: r.Partition, Value: history, Time: stamp}
	out := fmt.Sprintf("%s@%d", history, stamp)
	o.historiesOut[key] = entry{Partition: r.Partition, Value: out, Time: ts}
	o.histories[key] = append(o.histories[key], out)
}

func (o *oracle) time(tp partition, ts int64) {
	if known, ok := o.times[tp]; !ok || ts > known {
		o.times[tp] = ts
	}
}

// input makes the nth part of the input: lines of words, and pairs whose value is null now
// and then. Timestamps go up and down; the largest of all stands in the first part, so that
// who counts on must have kept it.
//
// No window has records of two parts: who numbers duplicates from the start again, as Kafka
// Streams does, must not meet its own numbers.
type input struct {
	lines, pairs []*kgo.Record
}

// start is where the times of the first part begin.
var start = time.Now().Add(-time.Hour).Truncate(windowSize).UnixMilli() + shiftBy

// mirror turns times around: mirror - t of a later part is later.
var mirror = 2 * start

func newInput(random *rand.Rand, n int) input {
	var in input
	drawn := map[int64]bool{} // a version of a key has a time of its own
	at := func() time.Time {
		for {
			ms := start - int64(n)*100_000 + random.Int64N(90_000)
			if !drawn[ms] {
				drawn[ms] = true
				return time.UnixMilli(ms)
			}
		}
	}
	for i := range 60 {
		var words []string
		for range 1 + random.IntN(5) {
			words = append(words, fmt.Sprintf("w%d", random.IntN(30)))
		}
		in.lines = append(in.lines, &kgo.Record{Partition: int32(i % partitions), Key: []byte("line"), Value: []byte(strings.Join(words, " ")), Timestamp: at()})
	}
	for i := range 80 {
		key := []byte(fmt.Sprintf("k%d", random.IntN(12)))
		r := &kgo.Record{Partition: kafka.Partition(key, partitions), Key: key, Timestamp: at()}
		if random.IntN(5) > 0 {
			r.Value = []byte(fmt.Sprintf("%d.%d", n, i))
		}
		in.pairs = append(in.pairs, r)
	}
	return in
}
