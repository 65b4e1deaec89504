package kinds

import (
	"bytes"
	"iter"
	"slices"
)

// mapRows keeps rows in a sorted slice, and what was logged since the last commit.
type mapRows struct {
	rows   []Row
	logged []Row // a nil value = deleted
}

func (m *mapRows) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(m.rows, key, func(r Row, key []byte) int { return bytes.Compare(r.Key, key) })
}

func (m *mapRows) Get(key []byte) ([]byte, int64, bool, error) {
	i, ok := m.find(key)
	if !ok {
		return nil, 0, false, nil
	}
	return bytes.Clone(m.rows[i].Value), m.rows[i].Timestamp, true, nil
}

func (m *mapRows) Put(key, value []byte, timestamp int64, logged bool) error {
	r := Row{bytes.Clone(key), bytes.Clone(value), timestamp}
	if logged {
		m.logged = append(m.logged, r)
		if IsLog(key) {
			return nil
		}
	}
	i, ok := m.find(key)
	switch {
	case value == nil && ok:
		m.rows = slices.Delete(m.rows, i, i+1)
	case value == nil:
	case ok:
		m.rows[i] = r
	default:
		m.rows = slices.Insert(m.rows, i, r)
	}
	return nil
}

func (m *mapRows) Scan(ranges []Range, reverse bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var found []Row
		for i, g := range ranges {
			if i > 0 && bytes.Compare(ranges[i-1].To, g.From) > 0 {
				panic("ranges overlap")
			}
			for _, r := range m.rows {
				if within(r.Key, g.From, g.To) {
					found = append(found, Row{bytes.Clone(r.Key), bytes.Clone(r.Value), r.Timestamp})
				}
			}
		}
		if reverse {
			slices.Reverse(found)
		}
		for _, r := range found {
			if !yield(r, nil) {
				return
			}
			clear(r.Key) // nobody may keep them
			clear(r.Value)
		}
	}
}

// expire deletes the rows that have expired, as a commit may do at any time.
func (m *mapRows) expire(l Layout, c *Clock) {
	end := l.Expired(c)
	if end == nil {
		return
	}
	m.rows = slices.DeleteFunc(m.rows, func(r Row) bool { return bytes.Compare(r.Key, end) < 0 })
}

type fataler interface {
	Helper()
	Fatal(...any)
}

func collect[E any](t fataler, seq iter.Seq2[E, error], show func(E) string) []string {
	t.Helper()
	all := []string{}
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, show(e))
	}
	return all
}
