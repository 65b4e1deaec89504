package task

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-streams/tidemark/statestore"
)

// A record with a null key is nobody's row: a changelog that holds one was written by somebody else, and is
// not restored around it.
func TestRestoreRefusesANullKey(t *testing.T) {
	r := newRestoring(t)
	r.feed.fetches[1].Records[0].Key = nil
	err := r.restore()
	var failed *Error
	if !errors.As(err, &failed) || failed.Task != r.task.id {
		t.Fatalf("%v", err)
	}
	for _, words := range []string{"app-counts-changelog", "@58", "null key", "counts"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("the error does not name %s: %v", words, err)
		}
	}
	if got := r.at(); got != statestore.At(52) { // what came before it stays
		t.Errorf("the store is at %v", got)
	}
}
