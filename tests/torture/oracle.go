package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// record is what the oracle knows of one.
type record struct {
	offset     int64
	key, value string
	null       bool
	ms         int64
}

// truth is what must be left of one input partition.
type truth struct {
	lines  map[int64]string // by input offset: key, and the line without its life
	order  []int64          // the offsets
	ledger map[string]string
	latest map[string]string
	slots  map[string]map[int64]string // by key and slot: the last hash, "-" where the ledger ended
	groups map[string]string           // tallies of this partition's lines
}

// recompute is the oracle: the records of one input partition, counted without Tidemark.
func recompute(partition int32, in []record) *truth {
	t := &truth{lines: map[int64]string{}, ledger: map[string]string{}, latest: map[string]string{}, slots: map[string]map[int64]string{}, groups: map[string]string{}}
	streamTime := int64(-1)
	for _, r := range in {
		streamTime = max(streamTime, r.ms)
		n, hash := 0, "-"
		if r.null {
			delete(t.ledger, r.key)
		} else {
			count, before, _ := strings.Cut(t.ledger[r.key], " ")
			n, _ = strconv.Atoi(count)
			n++
			hash = chain(before, r.value)
			t.ledger[r.key] = fmt.Sprint(n, " ", hash)
		}
		group := hash[:1]
		t.latest[group] = r.key
		if t.slots[r.key] == nil {
			t.slots[r.key] = map[int64]string{}
		}
		t.slots[r.key][slotOf(r.ms)] = hash
		line := fmt.Sprintf("%d %d %d %s %d", partition, r.offset, n, hash, streamTime)
		t.lines[r.offset] = r.key + " " + line
		t.order = append(t.order, r.offset)
		t.groups[group] = addToTally(t.groups[group], line)
	}
	return t
}

// visits gives what the window store holds: a hash for each window.
func (t *truth) visits() map[string]string {
	m := map[string]string{}
	for key, slots := range t.slots {
		for at, hash := range slots {
			if hash != "-" {
				m[fmt.Sprint(key, "@", at)] = hash
			}
		}
	}
	return m
}

// history gives what the versioned store holds: hashes, and from when to when each was valid.
func (t *truth) history() map[string]string {
	m := map[string]string{}
	for key, slots := range t.slots {
		starts := slices.Sorted(maps.Keys(slots))
		for i, at := range starts {
			to := int64(-1)
			if i+1 < len(starts) {
				to = starts[i+1]
			}
			if slots[at] != "-" {
				m[versionName(key, at, to)] = slots[at]
			}
		}
	}
	return m
}

// versionName names a version; to is -1 for one that is valid until further notice.
func versionName(key string, from, to int64) string { return fmt.Sprint(key, "@", from, "-", to) }

// addTallies gives the tally of two parts together.
func addTallies(a, b string) string {
	parse := func(s string) (int64, uint64) {
		count, sum, _ := strings.Cut(s, " ")
		n, _ := strconv.ParseInt(count, 10, 64)
		x, _ := strconv.ParseUint(sum, 16, 64)
		return n, x
	}
	n1, x1 := parse(a)
	n2, x2 := parse(b)
	return fmt.Sprintf("%d %x", n1+n2, x1+x2)
}

// output is a record that a processor wrote, taken apart: which life wrote it, out of which source
// record, and the rest.
type output struct {
	at     int64 // its own offset
	key    string
	life   string
	begin  int64 // of the life, Unix milliseconds
	source int64 // offset
	rest   string
}

func parseOutput(r record) (output, error) {
	f := strings.SplitN(r.value, " ", 4)
	if len(f) != 4 {
		return output{}, fmt.Errorf("output @%d is %q", r.offset, r.value)
	}
	begin, err := strconv.ParseInt(f[0][strings.LastIndexByte(f[0], '.')+1:], 10, 64)
	if err != nil {
		return output{}, fmt.Errorf("output @%d: life %q: %w", r.offset, f[0], err)
	}
	source, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return output{}, fmt.Errorf("output @%d: source offset: %w", r.offset, err)
	}
	return output{r.offset, r.key, f[0], begin, source, f[1] + " " + f[2] + " " + f[3]}, nil
}

// problems collects what is wrong, and keeps the first few of each kind.
type problems struct {
	byKind map[string][]string
	n      map[string]int
}

func (p *problems) add(kind, format string, args ...any) {
	if p.n == nil {
		p.n, p.byKind = map[string]int{}, map[string][]string{}
	}
	if p.n[kind]++; p.n[kind] <= 3 {
		p.byKind[kind] = append(p.byKind[kind], fmt.Sprintf(format, args...))
	}
}

func (p *problems) err() error {
	if len(p.n) == 0 {
		return nil
	}
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(p.n)) {
		fmt.Fprintf(&b, "\n  %s (%d): %s", kind, p.n[kind], strings.Join(p.byKind[kind], "; "))
	}
	return fmt.Errorf("the oracle found:%s", b.String())
}

// judge compares the outputs of one partition that come of one source partition with what they
// must be: want by source offset, in the order of order. Under exactly-once each is there once and
// in order. Under at-least-once a life writes in order, each copy of an output is the same, none is
// missing, and no life writes what was committed when it began (committed gives an offset below
// which everything was, by the time).
func judge(p *problems, where string, exactly bool, order []int64, want map[int64]string, got []output, committed func(at int64) int64) (repeated int) {
	seen := map[int64]int{}
	last := map[string]int64{}
	next := 0
	for _, o := range got {
		w, ok := want[o.source]
		if is := o.key + " " + o.rest; !ok || is != w {
			p.add("wrong output", "%s@%d of life %s is %q, want %q", where, o.at, o.life, is, w)
		}
		if seen[o.source]++; seen[o.source] > 1 {
			repeated++
		}
		if exactly {
			switch {
			case seen[o.source] > 1:
				p.add("output twice", "%s@%d: of source offset %d, by life %s", where, o.at, o.source, o.life)
			case next < len(order) && order[next] != o.source:
				p.add("output out of order", "%s@%d: of source offset %d, want %d", where, o.at, o.source, order[next])
			}
			next++
			continue
		}
		if before, ok := last[o.life]; ok && o.source <= before {
			p.add("life out of order", "%s@%d: life %s wrote source offset %d after %d", where, o.at, o.life, o.source, before)
		}
		last[o.life] = o.source
		if least := committed(o.begin); o.source < least {
			p.add("repeated though committed", "%s@%d: life %s wrote source offset %d, but %d was committed before it began", where, o.at, o.life, o.source, least)
		}
	}
	for _, offset := range order {
		if seen[offset] == 0 {
			p.add("output missing", "%s: of source offset %d", where, offset)
		}
	}
	return repeated
}

// compareMaps compares what a store or a changelog holds.
func compareMaps(p *problems, what string, got, want map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[k]; !ok || g != want[k] {
			p.add(what, "%q is %q, want %q", k, g, want[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok {
			p.add(what, "%q is %q, want nothing", k, got[k])
		}
	}
}
