package kinds

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func showVersion(v Version) string {
	if v.Current {
		return fmt.Sprintf("%q=%s from %d", v.Key, v.Value, v.From)
	}
	return fmt.Sprintf("%q=%s from %d to %d", v.Key, v.Value, v.From, v.To)
}

// versionedModel keeps everything ever put: by key and time, nil for no value.
type versionedModel struct {
	Layout
	now  int64
	puts map[string]map[int64][]byte
}

func (m *versionedModel) put(key string, value []byte, timestamp int64) PutResult {
	if timestamp < m.now-m.Retention {
		return PutResult{}
	}
	m.now = max(m.now, timestamp)
	if m.puts[key] == nil {
		m.puts[key] = map[int64][]byte{}
	}
	m.puts[key][timestamp] = value
	for _, t := range slices.Sorted(maps.Keys(m.puts[key])) {
		if t > timestamp {
			return PutResult{Stored: true, ValidTo: t}
		}
	}
	return PutResult{Stored: true, Current: true}
}

// versions are those of a key whose rows are not in an expired segment, oldest first.
func (m *versionedModel) versions(key string) (all []Version) {
	times := slices.Sorted(maps.Keys(m.puts[key]))
	for i, t := range times {
		v := Version{Key: []byte(key), Value: m.puts[key][t], From: t, Current: i == len(times)-1}
		if !v.Current {
			v.To = times[i+1]
		}
		if v.Value != nil && (v.Current || v.To/m.Interval >= max(m.now-m.Retention, 0)/m.Interval) {
			all = append(all, v)
		}
	}
	return all
}

func (m *versionedModel) asOf(key string, t int64) string {
	for _, v := range m.versions(key) {
		if v.From <= t && (v.Current || t < v.To) && (v.Current || t >= m.now-m.Retention) {
			return showVersion(v)
		}
	}
	return "none"
}

func shown(v Version, ok bool, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case !ok:
		return "none"
	}
	return showVersion(v)
}

func TestVersionedAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout := rapid.SampledFrom([]Layout{{0, 1}, {5, 3}, {40, 10}, {7, 20}}).Draw(t, "layout")
		m := &versionedModel{Layout: layout, now: -1, puts: map[string]map[int64][]byte{}}
		rows := &mapRows{}
		v := &Versioned{Rows: rows, Layout: layout, Clock: &Clock{}}
		time := rapid.Int64Range(0, 60)
		check := func(t *rapid.T) {
			for _, k := range []string{"", "a", "a\x00", "b"} {
				want := []string{}
				for _, x := range m.versions(k) {
					want = append(want, showVersion(x))
				}
				if got := collect(t, v.Versions([]byte(k), math.MinInt64, math.MaxInt64, false), showVersion); !slices.Equal(got, want) {
					t.Fatalf("versions of %q at %d:\n got %v\nwant %v", k, m.now, got, want)
				}
			}
		}
		put := func(t *rapid.T) {
			key, timestamp := rapid.SampledFrom([]string{"", "a", "a\x00", "b"}).Draw(t, "key"), time.Draw(t, "timestamp")
			value := []byte(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "value")))
			if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
				value = nil
			}
			before, logged := m.asOf(key, timestamp), len(rows.logged)
			want := m.put(key, value, timestamp)
			if value == nil && rapid.Bool().Draw(t, "by Delete") {
				if !want.Stored {
					before = "none"
				}
				if got := shown(v.Delete([]byte(key), timestamp)); got != before {
					t.Fatalf("delete %q at %d gives %s; want %s", key, timestamp, got, before)
				}
			} else if got, err := v.Put([]byte(key), value, timestamp); err != nil || got != want {
				t.Fatalf("put %q at %d = %+v, %v; want %+v", key, timestamp, got, err, want)
			}
			if got := len(rows.logged) - logged; got != 1 && want.Stored || got != 0 && !want.Stored {
				t.Fatalf("%d logged rows for %+v", got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": put, "put2": put, "put3": put,
			"get": func(t *rapid.T) {
				key, asOf := keys.Draw(t, "key"), time.Draw(t, "as of")
				if got, want := shown(v.GetAsOf([]byte(key), asOf)), m.asOf(key, asOf); got != want {
					t.Fatalf("get %q as of %d at %d = %s; want %s", key, asOf, m.now, got, want)
				}
				if got, want := shown(v.Get([]byte(key))), m.asOf(key, math.MaxInt64); got != want {
					t.Fatalf("get %q = %s; want %s", key, got, want)
				}
			},
			"versions": func(t *rapid.T) {
				key, from, to, reverse := keys.Draw(t, "key"), time.Draw(t, "from"), time.Draw(t, "to"), rapid.Bool().Draw(t, "reverse")
				want := []string{}
				for _, x := range m.versions(key) {
					if from <= to && x.From <= to && (x.Current || x.To > from) && (x.Current || to >= m.now-m.Retention) {
						want = append(want, showVersion(x))
					}
				}
				if reverse {
					slices.Reverse(want)
				}
				if got := collect(t, v.Versions([]byte(key), from, to, reverse), showVersion); !slices.Equal(got, want) {
					t.Fatalf("versions of %q from %d to %d at %d:\n got %v\nwant %v", key, from, to, m.now, got, want)
				}
			},
			"all": func(t *rapid.T) {
				n := 0
				for k := range m.puts {
					n += len(m.versions(k))
				}
				if got := collect(t, v.All(), showVersion); len(got) != n {
					t.Fatalf("%d versions in all; want %d: %v", len(got), n, got)
				}
			},
			"expire": func(*rapid.T) { rows.expire(layout, v.Clock) },
			"":       check,
		})
		// What was logged, in the order in which it is in the changelog, makes the same store.
		slices.SortStableFunc(rows.logged, func(a, b Row) int { return bytes.Compare(a.Key, b.Key) })
		restored := &Versioned{Rows: &mapRows{}, Layout: layout, Clock: &Clock{}}
		for _, r := range rows.logged {
			if err := restored.Restore(LoggedVersion(r.Key), r.Value, r.Timestamp); err != nil {
				t.Fatal(err)
			}
		}
		v = restored
		check(t)
	})
}

// TestVersionedAsKafkaStreams is what Kafka Streams answers to puts: when the version is valid to,
// the newest one, and the one 10 before.
func TestVersionedAsKafkaStreams(t *testing.T) {
	v := &Versioned{Rows: &mapRows{}, Layout: Layout{100, HistoryInterval(100)}, Clock: &Clock{}}
	for i, s := range []struct {
		key, value string
		at         int64
		want       string
	}{
		{"a", "1", 50, "current 1@50 none"}, {"a", "2", 60, "current 2@60 1@50-60"}, {"a", "3", 55, "60 2@60 none"},
		{"a", "", 70, "current none 2@60-70"}, {"a", "4", 65, "70 none 3@55-60"}, {"a", "5", 170, "current 5@170 none"},
		{"a", "6", 60, "refused 5@170 none"}, {"b", "7", 75, "current 7@75 none"}, {"a", "8", 80, "170 5@170 none"},
		{"a", "", 171, "current none 8@80-170"}, {"a", "", 172, "current none 8@80-170"},
	} {
		var value []byte
		if s.value != "" {
			value = []byte(s.value)
		}
		r, err := v.Put([]byte(s.key), value, s.at)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(r.ValidTo)
		switch {
		case !r.Stored:
			got = "refused"
		case r.Current:
			got = "current"
		}
		one := func(x Version, ok bool, err error) string {
			switch {
			case err != nil:
				return err.Error()
			case !ok:
				return " none"
			case x.Current:
				return fmt.Sprintf(" %s@%d", x.Value, x.From)
			}
			return fmt.Sprintf(" %s@%d-%d", x.Value, x.From, x.To)
		}
		got += one(v.Get([]byte(s.key)))
		got += one(v.GetAsOf([]byte(s.key), s.at-10))
		if got != s.want {
			t.Errorf("put %d: %s; want %s", i, got, s.want)
		}
	}
}

// TestDeletedNeverComesBack: a value that is replaced by none at the same time is not
// followed by an older one that arrives later.
func TestDeletedNeverComesBack(t *testing.T) {
	v := &Versioned{Rows: &mapRows{}, Layout: Layout{100, 50}, Clock: &Clock{}}
	key := []byte("k")
	for _, put := range []struct {
		value []byte
		at    int64
	}{{[]byte("new"), 20}, {nil, 20}, {[]byte("old"), 10}} {
		if _, err := v.Put(key, put.value, put.at); err != nil {
			t.Fatal(err)
		}
	}
	if x, ok, err := v.Get(key); ok || err != nil {
		t.Errorf("deleted at 20, and yet %+v, %v", x, err)
	}
	if got := shown(v.GetAsOf(key, 19)); got != `"k"=old from 10 to 20` {
		t.Errorf("as of 19: %s", got)
	}
}

func TestHistoryIntervals(t *testing.T) {
	for history, want := range map[int64]int64{0: 2000, 3000: 2000, 60_000: 20_000, 60_001: 20_000, 300_000: 60_000, 300_001: 60_000, 3_600_000: 300_000, 3_600_001: 300_000, 86_400_000: 3_600_000} {
		if got := HistoryInterval(history); got != want {
			t.Errorf("history %d: interval %d; want %d", history, got, want)
		}
	}
	for retention, want := range map[int64]int64{0: 60_000, 119_999: 60_000, 120_002: 60_001} {
		if got := WindowInterval(retention); got != want {
			t.Errorf("retention %d: interval %d; want %d", retention, got, want)
		}
	}
}

func FuzzDecodeVersion(f *testing.F) {
	f.Add([]byte{}, []byte{}, int64(0))
	v := &Versioned{Layout: Layout{100, 10}}
	f.Add(v.appendHistory(nil, []byte("k"), 20), []byte{1, 'v'}, int64(5))
	f.Add(appendLatest(nil, []byte("k")), []byte("v"), int64(5))
	f.Fuzz(func(t *testing.T, key, value []byte, timestamp int64) {
		x, ok, err := DecodeVersion(Row{key, value, timestamp})
		if err != nil {
			return
		}
		if x.From != timestamp || x.From < 0 || !x.Current && x.From > x.To || ok != (x.Value != nil) && !x.Current {
			t.Errorf("%x, %x at %d decoded to %+v, %v", key, value, timestamp, x, ok)
		}
	})
}
