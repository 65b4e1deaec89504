package table

// Put writes a value, nil for a deletion. Key and value are copied.
func (t *Table) Put(store uint32, key, value []byte, timestamp int64) error {
	return t.put(store, 0, key, value, timestamp)
}

// PutUnlogged is Put for a write that does not go into the changelog. Of several writes of a
// key in one interval only the last counts, in this too.
func (t *Table) PutUnlogged(store uint32, key, value []byte, timestamp int64) error {
	return t.put(store, flagUnlogged, key, value, timestamp)
}

func (t *Table) put(store, flags uint32, key, value []byte, timestamp int64) error {
	if len(key) > MaxEntry || len(value) > MaxEntry {
		return ErrTooLarge
	}
	if t.dirtyBytes+headerSize+len(key)+len(value) > maxDirty {
		return ErrFull
	}
	ref := t.last
	if ref == 0 || t.lastStore != store || !matches(t.young.at(ref), store, key) {
		if t.young.total >= t.half {
			t.flip()
		}
		ref = t.lookup(store, key)
	}
	flags |= flagDirty | t.epoch<<epochShift
	if value == nil {
		flags |= flagAbsent
	}
	if ref == 0 {
		return t.insertDirty(store, flags, key, value, timestamp)
	}
	return t.overwrite(ref, store, flags, key, value, timestamp)
}

func (t *Table) insertDirty(store, flags uint32, key, value []byte, timestamp int64) error {
	// A key that could not be promoted is still in the old generation, perhaps dirty.
	if t.old.n > 0 && t.old.find(t.lastTag, store, key) != 0 {
		return ErrFull
	}
	ref := t.young.write(store, flags, key, value, 0, timestamp)
	if ref == 0 {
		return ErrFull
	}
	t.young.link(t.lastTag, ref)
	t.last = ref
	t.markDirty(ref, store, key, len(value))
	return nil
}

func (t *Table) overwrite(ref, store, flags uint32, key, value []byte, timestamp int64) error {
	e := t.young.at(ref)
	before := meta(e)
	oldLen := valLen(e)
	if len(value) > valCap(e) || len(t.open) > 0 {
		return t.rewrite(ref, store, flags, key, value, timestamp)
	}
	setValue(e, value)
	setTime(e, timestamp)
	setMeta(e, store|flags)
	if before&flagDirty == 0 {
		t.markDirty(ref, store, key, len(value))
		return nil
	}
	t.dirtyBytes += len(value) - oldLen
	return nil
}

// rewrite is overwrite in a new place: the value needs more room, or somebody may look at
// the old one.
func (t *Table) rewrite(ref, store, flags uint32, key, value []byte, timestamp int64) error {
	e := t.young.at(ref)
	before, oldLen, capacity := meta(e), valLen(e), valCap(e)
	if len(value) > capacity {
		// Twice the capacity: a value that grows with every write must not leave a copy of
		// itself behind each time.
		capacity *= 2
	}
	n := t.young.write(store, flags, key, value, capacity, timestamp)
	if n == 0 {
		return ErrFull
	}
	setMeta(e, before&^flagDirty)
	t.young.relink(t.lastTag, ref, n)
	t.last = n
	if before&flagDirty == 0 {
		t.markDirty(n, store, key, len(value))
		return nil
	}
	t.young.dirty = append(t.young.dirty, n)
	t.dirtyBytes += len(value) - oldLen
	if x := t.indexOf(store); x != nil {
		x.put(t.young.id, n)
	}
	return nil
}

func (t *Table) markDirty(ref, store uint32, key []byte, value int) {
	t.young.dirty = append(t.young.dirty, ref)
	t.young.writer = t.interval
	t.dirtyBytes += headerSize + len(key) + value
	t.dirtyCount++
	if x := t.indexOf(store); x != nil {
		x.put(t.young.id, ref)
	}
}
