package kinds

import (
	"bytes"
	"encoding/binary"
)

// A segment's rows of one user key lie together only as far as no other key continues it: a
// key is any bytes, and nothing marks where it ends and its times begin. So ranges are wide
// enough for what is asked, and whoever scans them leaves out the rows of other keys.

// keyRanges gives the ranges, one a segment, of the keys that begin with key and go on with
// low to high, both included and of the same length.
func keyRanges(first, last uint64, key, low, high []byte) []Range {
	if first > last {
		return nil
	}
	ranges := make([]Range, 0, last-first+1)
	size := 2*(segmentLen+len(key)) + len(low) + len(high) + 1
	for s := first; ; s++ {
		b := make([]byte, 0, size)
		b = append(append(binary.BigEndian.AppendUint64(b, s), key...), low...)
		n := len(b)
		b = append(append(append(binary.BigEndian.AppendUint64(b, s), key...), high...), 0)
		ranges = append(ranges, Range{b[:n:n], b[n:]})
		if s == last {
			return ranges
		}
	}
}

// segmentRange gives the range of whole segments.
func segmentRange(first, last uint64) []Range {
	if first > last {
		return nil
	}
	r := Range{From: binary.BigEndian.AppendUint64(nil, first)}
	if last < latestArea {
		r.To = binary.BigEndian.AppendUint64(nil, last+1)
	}
	return []Range{r}
}

// spanRanges gives the ranges of the user keys from <= key < to (nil is open) whose rows go
// on with at most high behind the user key.
func spanRanges(first, last uint64, from, to, high []byte) []Range {
	if first > last || to != nil && bytes.Compare(from, to) >= 0 {
		return nil
	}
	if len(from) == 0 && to == nil {
		return segmentRange(first, last)
	}
	end := spanEnd(to, high)
	ranges := make([]Range, 0, last-first+1)
	for s := first; ; s++ {
		r := Range{From: append(binary.BigEndian.AppendUint64(nil, s), from...)}
		if to != nil {
			r.To = append(binary.BigEndian.AppendUint64(nil, s), end...)
		} else {
			r.To = binary.BigEndian.AppendUint64(nil, s+1)
		}
		ranges = append(ranges, r)
		if s == last {
			return ranges
		}
	}
}

// spanEnd gives an end behind all rows of user keys before to. A row can stand at or behind
// to only if its user key is the beginning of to: "a" and its time can be behind "a\x00".
func spanEnd(to, high []byte) []byte {
	end := to
	for i := range to {
		if bytes.Compare(high, to[i:]) >= 0 {
			if row := append(append(bytes.Clone(to[:i]), high...), 0); bytes.Compare(row, end) > 0 {
				end = row
			}
		}
	}
	return end
}

func within(key, from, to []byte) bool {
	return bytes.Compare(key, from) >= 0 && (to == nil || bytes.Compare(key, to) < 0)
}
