package migration

import "math"

// nextOf converts the number of a file to the offset of the next record. Task files and
// positions hold the last record that was applied or seen, the global file holds the next.
func nextOf(raw int64, holdsNext bool) (next int64, ok bool) {
	switch {
	case holdsNext:
		return raw, true
	case raw == math.MaxInt64:
		return 0, false
	}
	return raw + 1, true
}
