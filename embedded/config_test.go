package embedded

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/task"
)

func TestValidateReportsEverything(t *testing.T) {
	c := Config{App: "a b", Stores: []processor.StoreDef{nil}, Guarantee: 7, OnConflict: 9, RevokeTimeout: -1, SyncInterval: -1, Replication: -1, Limits: task.Limits{MaxTaskIdle: time.Second, CommitRecords: -1}}
	err := c.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"App", "StateDir", "Stores[0]", "Guarantee", "OnConflict", "RevokeTimeout", "SyncInterval is -1ns: it must not be negative", "Replication", "MaxTaskIdle", "CommitRecords"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

func TestGoroutineNumber(t *testing.T) {
	here := goroutine()
	other := make(chan uint64)
	go func() { other <- goroutine() }()
	if o := <-other; here == 0 || o == 0 || here == o || here != goroutine() {
		t.Errorf("goroutines %d and %d", here, o)
	}
}
