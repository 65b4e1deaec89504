package task

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/tidemark-streams/tidemark/kafka"
)

func appendStarts(b []byte, starts []StoreStart) []byte {
	starts = slices.SortedFunc(slices.Values(starts), func(x, y StoreStart) int { return cmp.Compare(x.Name, y.Name) })
	b = binary.AppendUvarint(b, uint64(len(starts)))
	for _, s := range starts {
		b = binary.BigEndian.AppendUint32(b, s.Name)
		b = binary.AppendVarint(b, s.Offset)
	}
	return b
}

func (d *decoder) starts() []StoreStart {
	n, k := binary.Uvarint(d.b)
	if k <= 0 || n > uint64(len(d.b)-k)/5 {
		d.bad = true
		return nil
	}
	d.b = d.b[k:]
	var out []StoreStart
	for range n {
		if len(d.b) < 4 {
			d.bad = true
			return nil
		}
		s := StoreStart{Name: binary.BigEndian.Uint32(d.b)}
		d.b = d.b[4:]
		if s.Offset = d.varint(); s.Offset < 0 {
			d.bad = true
		}
		out = append(out, s)
	}
	return out
}

// start gives where a store began in the partition that the metadata is of.
func (m *Metadata) start(store string) (offset int64, ok bool) {
	name := HashName(store)
	for _, s := range m.Starts {
		if s.Name == name {
			return s.Offset, true
		}
	}
	return 0, false
}

// wasUnlogged tells whether the group's offsets say that a store had no changelog.
func (p *plan) wasUnlogged(store string) bool {
	for _, m := range p.meta {
		if _, known := m.start(store); known {
			return true
		}
	}
	return false
}

// learnStarts keeps where each store without a changelog began, for the commits to come: as the group's
// metadata says, or, for a store that begins anew and for a source that is new, at the position.
func (p *plan) learnStarts() {
	t := p.task
	t.starts = map[kafka.TopicPartition][]StoreStart{}
	for _, q := range t.queues {
		m, committed := p.meta[q.tp]
		for _, name := range t.unlogged() {
			at, known := m.start(name)
			switch {
			case p.unlogged.begins[name] || !committed:
				at = q.position
			case !known:
				continue
			}
			t.starts[q.tp] = append(t.starts[q.tp], StoreStart{HashName(name), at})
		}
	}
}

// unlogged names the task's stores without a changelog.
func (t *Task) unlogged() (names []string) {
	for _, s := range t.sub.Stores {
		if s.Unlogged {
			names = append(names, s.Name)
		}
	}
	return names
}

// logged names the task's stores with a changelog.
func (t *Task) logged() (names []string) {
	for _, s := range t.sub.Stores {
		if !s.Unlogged {
			names = append(names, s.Name)
		}
	}
	return names
}
