package pebbledb

import (
	"fmt"
	"strings"
	"time"
)

// Replay is what opening found in the write-ahead log.
type Replay struct {
	Keys, Batches int64
	// Bytes of the logs read.
	Bytes int64
	// Time from the first look at the logs to the last record.
	Time time.Duration

	begun time.Time
}

// note reads Pebble's report on a log: it has no event for it.
func (r *Replay) note(format string, args []any) {
	if strings.HasPrefix(format, "Found %d WALs") {
		r.begun = time.Now()
		return
	}
	if !strings.Contains(format, "stopped reading at offset") || len(args) != 5 {
		return
	}
	keys, ok1 := args[3].(int64)
	batches, ok2 := args[4].(int64)
	if !ok1 || !ok2 || batches == 0 {
		return
	}
	r.Keys += keys
	r.Batches += batches
	r.Time = time.Since(r.begun)
	if o, ok := args[2].(interface{ String() string }); ok {
		var name string
		var at int64
		if _, err := fmt.Sscanf(strings.TrimPrefix(o.String(), "("), "%s %d", &name, &at); err == nil {
			r.Bytes += at
		}
	}
}
