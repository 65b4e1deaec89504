package statestore

import "time"

// CaughtUpAt gives a time of the wall clock at which no store of the task lacked anything of its
// changelog: that of the last commit or end of a restore or, if there was none, of the creation of
// the empty database. Of data that was imported since it is when the other program wrote that last, and the zero time if that is
// not known. A restore that is not over leaves it as it is.
func (s *TaskStore) CaughtUpAt() time.Time {
	at := s.opened.CreatedAt
	if ms := s.committed.Load().committed; ms != 0 {
		at = time.UnixMilli(ms)
	}
	for _, x := range s.Imports() {
		if s.committed.Load().committed != 0 && !x.Time.After(at) {
			continue // it was brought up to its changelog's end since
		}
		if x.Data.IsZero() {
			return time.Time{}
		}
		if x.Data.Before(at) {
			at = x.Data
		}
	}
	return at
}
