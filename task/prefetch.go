package task

import "fmt"

// prefetch reads ahead the rows that the next records, at most n of each partition, will
// read, where the topology says which these are. It changes nothing but the time they take.
func (t *Task) prefetch(n int) error {
	for _, q := range t.queues {
		if q.len() < prefetchRecords || !t.inst.WantsKeys(q.topic) {
			continue
		}
		waiting := q.records[q.head:]
		for i := range waiting[:min(n, len(waiting))] {
			if key := waiting[i].Key; key != nil {
				t.keys = append(t.keys, key)
			}
		}
		err := t.inst.Prefetch(q.topic, t.keys)
		clear(t.keys) // they pin fetch buffers
		t.keys = t.keys[:0]
		if err != nil {
			return &Error{Task: t.id, Err: fmt.Errorf("read ahead: %w", err)}
		}
	}
	return nil
}

// prefetchRecords: with fewer records waiting, reading ahead saves nothing.
const prefetchRecords = 32
