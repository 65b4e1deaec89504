package processor

import (
	"testing"
	"time"
)

// A processor may replace its punctuation at every record (the usual debounce): what was
// cancelled must not stay.
func TestCancelledPunctuationsAreForgotten(t *testing.T) {
	for _, by := range []PunctuationType{StreamTime, WallClockTime} {
		var s schedule
		never := func(time.Time) error { return nil }
		cancel := s.add("node", time.Hour, by, 0, never)
		for range 100 {
			cancel()
			cancel() // twice is no harm
			cancel = s.add("node", time.Hour, by, 0, never)
		}
		if len(s.entries) != 1 {
			t.Errorf("%d punctuations are kept, want 1", len(s.entries))
		}
		cancel()
		if _, ok := s.earliest(by); ok || len(s.entries) != 0 || s.hasStream {
			t.Errorf("after the last was cancelled: %d, due %v", len(s.entries), ok)
		}
	}
}
