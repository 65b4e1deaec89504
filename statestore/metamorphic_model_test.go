package statestore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// The model of the metamorphic test knows nothing of rows, segments that lie anywhere,
// overlays or files: a store is what was put into it, and its own stream time.

// simKey is a key and the times beside it: of a window its start, of a session its start and end,
// of a value that is one of several of a window its number.
type simKey struct {
	key        string
	start, end int64
	n          uint32
}

type simValue struct {
	value     string
	timestamp int64
}

// simVersion says that from a time on there is this value, or none.
type simVersion struct {
	from  int64
	value string
	none  bool
}

// simStore is one state of one store.
type simStore struct {
	spec     Spec                    // as it is recorded
	segment  int64                   // the segment interval that it was made with
	entries  map[simKey]simValue     // but of versioned stores
	versions map[string][]simVersion // by time
	now      int64
	n        uint32
	offset   Offset
	complete bool
	recorded Offset // in the commit record; after a crash that is another one than a user's own store says
	unknown  bool   // a user's own store after a crash: anything may be in it until it is restored
	stale    bool   // it is of a changelog that is not there any more
}

func newSimStore(p Spec) *simStore {
	return &simStore{spec: p, segment: simInterval(p), entries: map[simKey]simValue{}, versions: map[string][]simVersion{}, now: -1}
}

func (m *simStore) clone() *simStore {
	c := *m
	c.entries, c.versions = maps.Clone(m.entries), maps.Clone(m.versions)
	return &c
}

func (m *simStore) keyValue() bool {
	return m.spec.Kind == KindKeyValue || m.spec.Kind == KindTimestampedKeyValue
}

func (m *simStore) timestamped() bool {
	return m.spec.Kind == KindTimestampedKeyValue || m.spec.Kind == KindTimestampedWindow
}

func (m *simStore) retention() int64 { return m.spec.Retention.Milliseconds() }

// simInterval is the segment interval of Kafka Streams, for the retentions of this test.
func simInterval(p Spec) int64 {
	if p.Kind == KindVersioned {
		return max(p.Retention.Milliseconds()/3, 2_000)
	}
	return max(p.Retention.Milliseconds()/2, 60_000)
}

func (m *simStore) interval() int64 { return m.segment }

func (m *simStore) oldest() int64 { return max(m.now-m.retention(), 0) / m.interval() }

// kept tells whether the segment of an entry has not expired.
func (m *simStore) kept(k simKey) bool {
	return m.keyValue() || m.time(k)/m.interval() >= m.oldest()
}

// time is that of an entry by which it expires.
func (m *simStore) time(k simKey) int64 {
	if m.spec.Kind == KindSession {
		return k.end
	}
	return k.start
}

// advance moves the stream time.
func (m *simStore) advance(to int64) {
	if to <= m.now {
		return
	}
	m.now = to
	m.expire()
}

// expire forgets what is in segments that have expired.
func (m *simStore) expire() {
	maps.DeleteFunc(m.entries, func(k simKey, _ simValue) bool { return !m.kept(k) })
	for key, vs := range m.versions {
		var kept []simVersion
		for i, v := range vs {
			end := v.from
			if i+1 < len(vs) {
				end = vs[i+1].from
			}
			if last := i+1 == len(vs); last && !v.none || end/m.interval() >= m.oldest() {
				kept = append(kept, v)
			}
		}
		m.versions[key] = kept
		if len(kept) == 0 {
			delete(m.versions, key)
		}
	}
}

// put writes, nil deletes; refused tells that the segment has expired.
func (m *simStore) put(k simKey, value []byte, timestamp int64) (refused bool) {
	if m.spec.RetainDuplicates {
		if value == nil {
			return false
		}
		m.n++
		k.n = m.n
	}
	return m.set(k, value, timestamp)
}

func (m *simStore) set(k simKey, value []byte, timestamp int64) (refused bool) {
	if !m.keyValue() {
		m.advance(m.time(k))
		if m.time(k)/m.interval() < m.oldest() {
			return true
		}
	}
	if !m.timestamped() {
		timestamp = 0
	}
	if value == nil {
		delete(m.entries, k)
	} else {
		m.entries[k] = simValue{string(value), timestamp}
	}
	return false
}

// putVersion puts a version.
func (m *simStore) putVersion(key string, value []byte, from int64) PutResult {
	if from < m.now-m.retention() {
		return PutResult{}
	}
	vs := slices.Clone(m.versions[key])
	i, found := slices.BinarySearchFunc(vs, from, func(v simVersion, t int64) int { return cmp.Compare(v.from, t) })
	v := simVersion{from, string(value), value == nil}
	if found {
		vs[i] = v
	} else {
		vs = slices.Insert(vs, i, v)
	}
	m.versions[key] = vs
	m.advance(from)
	if i+1 < len(vs) {
		return PutResult{Stored: true, ValidTo: vs[i+1].from}
	}
	return PutResult{Stored: true, Current: true}
}

// logged applies a record of the store's changelog, whose key it takes apart.
func (m *simStore) logged(r RestoreRecord) {
	n := len(r.Key)
	value := func(key []byte) []byte { return simPresent(r.Schema, m.spec.SchemaVersion, key, r.Value) }
	switch m.spec.Kind {
	case KindVersioned:
		m.putVersion(string(r.Key), value(r.Key), r.Timestamp)
	case KindSession:
		key := r.Key[:n-16]
		m.set(simKey{key: string(key), end: int64(binary.BigEndian.Uint64(r.Key[n-16:])), start: int64(binary.BigEndian.Uint64(r.Key[n-8:]))}, value(key), r.Timestamp)
	case KindWindow, KindTimestampedWindow:
		k := simKey{key: string(r.Key[:n-12]), start: int64(binary.BigEndian.Uint64(r.Key[n-12:])), n: binary.BigEndian.Uint32(r.Key[n-4:])}
		m.n = max(m.n, k.n)
		m.set(k, value(r.Key[:n-12]), r.Timestamp)
	default:
		m.set(simKey{key: string(r.Key)}, value(r.Key), r.Timestamp)
	}
}

// order is that of scans: segment, then the bytes of the changelog's key.
func (m *simStore) order(k simKey) string {
	u64 := func(t int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(t))) }
	switch m.spec.Kind {
	case KindKeyValue, KindTimestampedKeyValue:
		return k.key
	case KindSession:
		return u64(k.end/m.interval()) + k.key + u64(k.end) + u64(k.start)
	}
	return u64(k.start/m.interval()) + k.key + u64(k.start) + string(binary.BigEndian.AppendUint32(nil, k.n))
}

// show gives the entries that reads show and that match, in the order of scans.
func (m *simStore) show(reverse bool, match func(k simKey) bool) []string {
	return m.list(reverse, func(k simKey) bool { return (m.keyValue() || m.time(k) > m.now-m.retention()) && match(k) })
}

func (m *simStore) list(reverse bool, match func(k simKey) bool) []string {
	var ks []simKey
	for k := range m.entries {
		if m.kept(k) && match(k) {
			ks = append(ks, k)
		}
	}
	slices.SortFunc(ks, func(a, b simKey) int { return strings.Compare(m.order(a), m.order(b)) })
	if reverse {
		slices.Reverse(ks)
	}
	all := []string{}
	for _, k := range ks {
		all = append(all, simText([]byte(k.key), k.start, k.end, []byte(m.entries[k].value), m.entries[k].timestamp))
	}
	return all
}

// tableRows gives the entries of a key-value store as the database has them.
func (m *simStore) tableRows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for _, k := range slices.SortedFunc(maps.Keys(m.entries), func(a, b simKey) int { return strings.Compare(a.key, b.key) }) {
			v := m.entries[k]
			var value []byte
			if m.timestamped() {
				value = binary.BigEndian.AppendUint64(nil, uint64(v.timestamp))
			}
			if !yield(Row{[]byte(k.key), append(value, v.value...)}, nil) {
				return
			}
		}
	}
}

func simText(key []byte, start, end int64, value []byte, timestamp int64) string {
	return fmt.Sprintf("%q %d-%d = %s/%d", key, start, end, shorten(value), timestamp)
}

// shorten keeps reports readable; values differ in their beginning, end or length.
func shorten(value []byte) string {
	if len(value) > 24 {
		return fmt.Sprintf("%s...%s/%d", value[:12], value[len(value)-8:], len(value))
	}
	return string(value)
}

// shownVersions gives the versions of a key that there were at any time of from to to.
func (m *simStore) shownVersions(key string, from, to int64) []Version {
	var all []Version
	vs := m.versions[key]
	for i, v := range vs {
		x := Version{Key: []byte(key), Value: []byte(v.value), From: v.from, Current: i+1 == len(vs)}
		if !x.Current {
			x.To = vs[i+1].from
		}
		inHistory := x.Current || to >= m.now-m.retention() && x.To > from && x.To/m.interval() >= m.oldest()
		if !v.none && v.from <= to && inHistory {
			all = append(all, x)
		}
	}
	return all
}

func (m *simStore) asOf(key string, at int64) (Version, bool) {
	vs := m.shownVersions(key, at, at)
	if len(vs) == 0 {
		return Version{}, false
	}
	return vs[0], true
}

func (m *simStore) allVersions() []string {
	all := []string{}
	for key := range m.versions {
		for _, v := range m.shownVersions(key, -1, m.now) {
			all = append(all, versionText(v))
		}
	}
	slices.Sort(all)
	return all
}

func versionText(v Version) string {
	if v.Current {
		v.To = -1
	}
	return simText(v.Key, v.From, v.To, v.Value, 0)
}

// differs says what is different in the content of two states; "" = nothing.
func (m *simStore) differs(o *simStore) string {
	all := func(simKey) bool { return true }
	switch {
	case m.now != o.now:
		return fmt.Sprintf("stream time %d and %d", m.now, o.now)
	case !slices.Equal(m.list(false, all), o.list(false, all)):
		return fmt.Sprintf("\n %v\n %v", m.list(false, all), o.list(false, all))
	case !slices.Equal(m.allVersions(), o.allVersions()):
		return fmt.Sprintf("\n %v\n %v", m.allVersions(), o.allVersions())
	}
	return ""
}

// simState is one state of a task store.
type simState struct {
	id         CommitID
	streamTime int64
	position   int64 // of in-0; 0 = none
	stores     map[string]*simStore
}

func newSimState(specs []Spec) *simState {
	m := &simState{streamTime: NoStreamTime, stores: map[string]*simStore{}}
	for _, p := range specs {
		m.stores[p.Name] = newSimStore(p)
	}
	return m
}

func (m *simState) clone() *simState {
	c := *m
	c.stores = map[string]*simStore{}
	for name, st := range m.stores {
		c.stores[name] = st.clone()
	}
	return &c
}

func (m *simState) progress() Progress {
	p := Progress{ID: m.id, StreamTime: m.streamTime}
	if m.position > 0 {
		p.Positions = []Position{{"in", 0, m.position}}
	}
	return p
}

// advance takes over a commit's progress.
func (m *simState) advance(p Progress) {
	m.id, m.streamTime = p.ID, max(m.streamTime, p.StreamTime)
	for _, x := range p.Positions {
		m.position = x.Next
	}
}

func cloneRecord(c Change) RestoreRecord {
	return RestoreRecord{Key: bytes.Clone(c.Key), Value: bytes.Clone(c.Value), Timestamp: c.Timestamp, Schema: c.Schema}
}
