package interop

import (
	gocmp "cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// keeping is the oracle's part about the stores of windows, sessions and versions.
type keeping struct {
	// what the changelogs hold at their ends, by the bytes of their keys
	windows, stampedWindows, sessions map[string]entry
	// duplicates are the values of each key and window, in order; versions all records of each key
	duplicates, versions map[string][]entry
	// said is what each key put out, in order
	said map[string][]string
}

func newKeeping() keeping {
	return keeping{windows: map[string]entry{}, stampedWindows: map[string]entry{}, sessions: map[string]entry{},
		duplicates: map[string][]entry{}, versions: map[string][]entry{}, said: map[string][]string{}}
}

// keep keeps a record of the second input.
func (o *keeping) keep(r *kgo.Record, shift int64) {
	key, ts := string(r.Key), r.Timestamp.UnixMilli()-shift
	said := o.window(key, ts, r) + " " + o.duplicate(key, ts, r) + " " + o.session(key, ts, r) + " " + o.version(key, mirror-ts, r)
	o.said[key] = append(o.said[key], said)
}

// windowKey is the key of a window in a changelog: key, start, and a number that is 0 where a
// window has one value.
func windowKey(key string, start int64) string {
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64([]byte(key), uint64(start)), 0))
}

func (o *keeping) window(key string, ts int64, r *kgo.Record) string {
	size := windowSize.Milliseconds()
	start := ts - ts%size
	k := windowKey(key, start)
	plain, stamped := entry{Partition: r.Partition, Null: true, Time: ts}, entry{Partition: r.Partition, Null: true, Time: ts}
	if r.Value != nil {
		n := uint64(1)
		if had, ok := o.windows[k]; ok && !had.Null {
			n += binary.BigEndian.Uint64([]byte(had.Value))
		}
		plain.Null, plain.Value = false, string(binary.BigEndian.AppendUint64(nil, n))
		stamped = entry{Partition: r.Partition, Value: string(r.Value), Time: ts - 7_000}
	}
	o.windows[k], o.stampedWindows[k] = plain, stamped
	var all []string
	for at := start - around.Milliseconds(); at <= start+around.Milliseconds(); at += size {
		if w, ok := o.windows[windowKey(key, at)]; ok && !w.Null {
			all = append(all, fmt.Sprintf("%d:%d", at, binary.BigEndian.Uint64([]byte(w.Value))))
		}
	}
	for at := start + around.Milliseconds(); at >= start-around.Milliseconds(); at -= size {
		if w, ok := o.stampedWindows[windowKey(key, at)]; ok && !w.Null {
			all = append(all, fmt.Sprintf("%s@%d", w.Value, w.Time))
		}
	}
	return strings.Join(all, ",")
}

func (o *keeping) duplicate(key string, ts int64, r *kgo.Record) string {
	k := windowKey(key, ts-ts%windowSize.Milliseconds())
	if r.Value != nil {
		o.duplicates[k] = append(o.duplicates[k], entry{Partition: r.Partition, Value: string(r.Value), Time: ts})
	}
	var all []string
	for _, d := range o.duplicates[k] {
		all = append(all, d.Value)
	}
	return strings.Join(all, ",")
}

func (o *keeping) session(key string, ts int64, r *kgo.Record) string {
	start, end, count, touching := ts, ts, uint64(1), 0
	for _, k := range slices.Sorted(maps.Keys(o.sessions)) {
		bounds, ok := strings.CutPrefix(k, key)
		if !ok || len(bounds) != 16 || o.sessions[k].Null {
			continue
		}
		last, first := int64(binary.BigEndian.Uint64([]byte(bounds))), int64(binary.BigEndian.Uint64([]byte(bounds[8:])))
		if last < ts-sessionGap.Milliseconds() || first > ts+sessionGap.Milliseconds() {
			continue
		}
		touching++
		start, end, count = min(start, first), max(end, last), count+binary.BigEndian.Uint64([]byte(o.sessions[k].Value))
		o.sessions[k] = entry{Partition: r.Partition, Null: true, Time: ts}
	}
	if r.Value != nil {
		k := string(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte(key), uint64(end)), uint64(start)))
		o.sessions[k] = entry{Partition: r.Partition, Value: string(binary.BigEndian.AppendUint64(nil, count)), Time: ts}
	}
	return fmt.Sprintf("%d:%d-%d:%d", touching, start, end, count)
}

func (o *keeping) version(key string, ts int64, r *kgo.Record) string {
	was := o.valid(key, ts)
	o.versions[key] = append(o.versions[key], entry{Partition: r.Partition, Value: string(r.Value), Null: r.Value == nil, Time: ts})
	if r.Value != nil {
		was = "-1"
		if to := o.next(key, ts); to >= 0 {
			was = fmt.Sprint(to)
		}
	}
	return was + "/" + o.valid(key, 1<<62) + "/" + o.valid(key, ts-10_000)
}

// next gives when the first version behind ts begins, or -1.
func (o *keeping) next(key string, ts int64) int64 {
	to := int64(-1)
	for _, v := range o.versions[key] {
		if v.Time > ts && (to < 0 || v.Time < to) {
			to = v.Time
		}
	}
	return to
}

// valid shows the version of a key that is valid at a time. Of two with one timestamp the later
// put counts.
func (o *keeping) valid(key string, at int64) string {
	found := entry{Null: true, Time: -1}
	for _, v := range o.versions[key] {
		if v.Time <= at && v.Time >= found.Time {
			found = v
		}
	}
	if found.Null {
		return "none"
	}
	return fmt.Sprintf("%s@%d", found.Value, found.Time)
}

// diffKinds compares what was put out about the stores, record by record.
func (e *env) diffKinds() string {
	e.t.Helper()
	said := map[string][]string{}
	for _, r := range e.read(e.kinds) {
		said[string(r.Key)] = append(said[string(r.Key)], string(r.Value))
	}
	return cmp.Diff(e.said, said)
}

// checkKinds compares what the changelogs hold with the oracle, byte by byte.
func (e *env) checkKinds() {
	e.t.Helper()
	for store, want := range map[string]map[string]entry{"windows": e.keeping.windows, "stamped-windows": e.keeping.stampedWindows, "sessions": e.keeping.sessions} {
		if diff := cmp.Diff(want, e.view(e.changelog(store))); diff != "" {
			e.t.Errorf("changelog of %s: -want +got\n%s", store, diff)
		}
	}
	// The numbers of duplicates are each library's own; their order is not.
	if diff := cmp.Diff(e.keeping.duplicates, e.history("duplicates", func(key string) string { return key[:len(key)-4] + "\x00\x00\x00\x00" })); diff != "" {
		e.t.Errorf("changelog of duplicates: -want +got\n%s", diff)
	}
	// There is a record for each version. Those of one commit of Tidemark's are ordered by time.
	versions := e.history("versions", func(key string) string { return key })
	if diff := cmp.Diff(byTime(e.keeping.versions), byTime(versions)); diff != "" {
		e.t.Errorf("changelog of versions: -want +got\n%s", diff)
	}
}

func byTime(versions map[string][]entry) map[string][]entry {
	out := map[string][]entry{}
	for key, all := range versions {
		out[key] = slices.SortedFunc(slices.Values(all), func(a, b entry) int { return gocmp.Compare(a.Time, b.Time) })
	}
	return out
}

// history gives all records of a changelog by key, in order.
func (e *env) history(store string, name func(key string) string) map[string][]entry {
	e.t.Helper()
	out := map[string][]entry{}
	for _, r := range e.read(e.changelog(store)) {
		key := name(string(r.Key))
		out[key] = append(out[key], entry{Partition: r.Partition, Value: string(r.Value), Null: r.Value == nil, Time: r.Timestamp.UnixMilli()})
	}
	return out
}
