// Package offsetcache knows how far each task of the application is on this host, whether it
// runs here or only has a directory here, and reads that from the directories at start.
//
//	cache := offsetcache.New()
//	report, err := cache.Scan(ctx, directories, offsetcache.ScanOptions{})
//	held, ok := cache.Lookup("0_3")
//	lags := held.Lags(bounds)
//
// # Owns
//
// The offsets of all tasks on this host, by task and changelog partition, and the reading of
// task directories at start.
//
// # Never
//
// Holds a hope: an offset comes in after it was committed, restored or found on disk, and
// what a crash or a dirty close may have lost goes out. Adds up stores: the lag of one must not
// hide that of another. Writes a task directory. Stops because of one directory.
//
// # Called by
//
// streams at start (Scan); task, on a worker's goroutine and on that of its commits, with what
// happened; rebalance and status pages, on any goroutine, to read.
//
// # Goroutines
//
// Every method is safe for concurrent use, and reading takes no lock. Scan has its own
// goroutines and waits for them. Nothing else runs.
//
// # Invariants
//
//  1. Absent, clean but unknown, and at N are three states; none is a number.
//  2. A reader sees all stores of a task as of one moment.
//  3. A task that was closed reads as what is on disk: after a clean close what it
//     committed, after a dirty one what was known to be durable.
//  4. Whoever was told of a change and looks sees that change, or a later one.
package offsetcache
