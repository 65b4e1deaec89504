package migration

import "time"

// written is when the other program wrote a store last, as far as the files tell: the time of the file that holds its offset,
// of goka, which keeps that among the data, the time of the newest data. The zero time: nothing tells. A copy that did not keep the times of
// files makes the data look younger than it is.
func (t *Task) written(store string) (at time.Time) {
	d, onDisk := t.storeDir(store)
	if onDisk && d.goka != nil {
		if at = later(d.newestTable, d.newestLog); at.IsZero() {
			at = d.newestManifest
		}
		return at
	}
	for i := range t.Files {
		switch f := &t.Files[i]; {
		case f.Kind == KindCheckpointStore && f.store == store:
			return f.modified
		case f.Kind == KindCheckpoint:
			at = f.modified
		}
	}
	if at.IsZero() && onDisk {
		at = later(later(d.newestTable, d.newestLog), d.newestManifest)
	}
	return at
}
