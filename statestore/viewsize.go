package statestore

// StoreSize is about how large a store is.
type StoreSize struct {
	// Rows in the database; exact or estimated, as Exact says.
	Rows  int64
	Exact bool
	// Bytes in table files, about; what is only in the log is not in it.
	Bytes int64
}

// Size tells how large a store is. Up to 10,000 rows are counted in any case, and up to 100,000 when so many are in
// the log, or were written lately, that an estimate would be wrong by more than half.
func (v *View) Size(name string) (size StoreSize, err error) {
	lower, upper := storeBounds(v.meta.catalog.ids[name])
	size.Rows, size.Exact, err = approximate(v.Rows(name, nil, nil), func() (settled, loose int64, err error) { return v.db.EstimateRows(lower, upper) })
	if err != nil {
		return StoreSize{}, err
	}
	bytes, err := v.db.DiskUsage(lower, upper)
	size.Bytes = int64(bytes)
	return size, err
}
