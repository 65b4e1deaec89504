package migration

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// engine is what wrote the files of a store.
type engine string

const (
	engineRocksDB engine = "RocksDB"
	enginePebble  engine = "Pebble"
	engineLevelDB engine = "LevelDB"
	engineGoka    engine = "goka" // a LevelDB with an offset in it
)

// storeDir is the data of one store below a task directory.
type storeDir struct {
	store  string
	path   string // of a window store: the directory with its segments
	engine engine

	newestTable, newestManifest time.Time // zero: none
	newestLog                   time.Time // of the logs that hold something

	goka *gokaTable // with engineGoka
}

// readable tells whether this package can read the data.
func (d storeDir) readable() bool { return d.engine == enginePebble || d.engine == engineGoka }

// findStores looks for the databases of a task directory:
//
//	rocksdb/<store>/                 Kafka Streams: key-value, timestamped, versioned
//	<store>/<store>.<start of segment>/  Kafka Streams: window, session
//	<any folder>/<store>/            applications with one Pebble (or LevelDB) database per store
//	<any folder>/<topic>.<partition>/    goka
func findStores(taskPath string) ([]storeDir, error) {
	entries, err := os.ReadDir(taskPath)
	if err != nil {
		return nil, err
	}
	var found []storeDir
	var errs []error
	for _, e := range entries {
		if !isDir(taskPath, e) {
			continue
		}
		in, err := findIn(filepath.Join(taskPath, e.Name()), e.Name())
		found, errs = append(found, in...), append(errs, err)
	}
	return found, errors.Join(errs...)
}

// findIn looks into one folder of a task directory.
func findIn(path, folder string) ([]storeDir, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var found []storeDir
	var window storeDir
	for _, e := range entries {
		if !isDir(path, e) || isSetAside(e.Name()) {
			continue
		}
		d, err := inspectDatabase(filepath.Join(path, e.Name()), folder == "rocksdb")
		if err != nil {
			return nil, err
		}
		d.lookForGoka(e.Name(), folder)
		switch {
		case d.goka == nil && isSegment(e.Name(), folder):
			window.store, window.path, window.engine = folder, path, engineRocksDB
			window.newestTable = later(window.newestTable, d.newestTable)
			window.newestManifest = later(window.newestManifest, d.newestManifest)
		case d.engine != "":
			d.store = e.Name()
			found = append(found, d)
		}
	}
	if window.store != "" {
		found = append(found, window)
	}
	return found, nil
}

// isSegment tells whether name is a segment of the window store: the store's name, then .
// or : and a time in milliseconds, or - and a time of the form yyyyMMddHHmm.
func isSegment(name, store string) bool {
	rest, ok := strings.CutPrefix(name, store)
	if !ok || len(rest) < 2 {
		return false
	}
	return strings.ContainsAny(rest[:1], ".:-") && strings.Trim(rest[1:], "0123456789") == ""
}

// inspectDatabase tells by its files which engine wrote a database. Nothing is read but
// the OPTIONS file, which names the engine.
func inspectDatabase(path string, inRocksDB bool) (storeDir, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return storeDir{}, err
	}
	x := inspection{storeDir: storeDir{path: path}}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return storeDir{}, err
		}
		x.see(info)
	}
	switch {
	case x.engine != "":
	case inRocksDB:
		x.engine = engineRocksDB
	case x.levelTable || x.current && !x.options && x.newestTable.IsZero():
		x.engine = engineLevelDB
	case x.manifest || x.options || x.current || !x.newestTable.IsZero():
		x.engine = enginePebble // a damaged one; opening it will say so
	}
	return x.storeDir, nil
}

// inspection is what the files of one database say.
type inspection struct {
	storeDir
	current, levelTable, manifest, options bool
}

func (x *inspection) see(f fs.FileInfo) {
	name := f.Name()
	switch {
	case strings.HasPrefix(name, "marker."):
		x.engine = enginePebble
	case name == "IDENTITY":
		x.engine = engineRocksDB
	case strings.HasPrefix(name, "OPTIONS-"):
		x.options = true
		if by := engineOf(filepath.Join(x.path, name)); by != "" {
			x.engine = by
		}
	case strings.HasPrefix(name, "MANIFEST-"):
		x.manifest = true
		x.newestManifest = later(x.newestManifest, f.ModTime())
	case strings.HasSuffix(name, ".sst"):
		x.newestTable = later(x.newestTable, f.ModTime())
	case strings.HasSuffix(name, ".log") && f.Size() > 0:
		x.newestLog = later(x.newestLog, f.ModTime())
	case name == "CURRENT":
		x.current = true
	case strings.HasSuffix(name, ".ldb"):
		x.levelTable = true
	}
}

func engineOf(optionsFile string) engine {
	f, err := os.Open(optionsFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 4096))
	switch {
	case err != nil:
		return ""
	case bytes.Contains(head, []byte("pebble_version")):
		return enginePebble
	case bytes.Contains(head, []byte("rocksdb_version")):
		return engineRocksDB
	}
	return ""
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// closedCleanly tells whether the file times prove that the task was closed cleanly after
// its .checkpoint file was written. What Kafka Streams does at a clean close: it flushes
// every database, writes .checkpoint, and closes the databases, which touches their
// MANIFEST. A table file that is not older holds data that came afterwards.
//
// Times that were lost (a copy, a checkout, whole seconds) are seldom in this order, and
// equal ones prove nothing.
func closedCleanly(stores []storeDir, checkpoint time.Time) bool {
	var table, manifest time.Time
	for _, d := range stores {
		if d.engine == engineGoka { // .checkpoint does not speak of it
			continue
		}
		table, manifest = later(table, d.newestTable), later(manifest, d.newestManifest)
		if d.engine == enginePebble {
			table = later(table, d.newestLog)
		}
	}
	if checkpoint.IsZero() || manifest.IsZero() {
		return false
	}
	return table.Before(checkpoint) && !manifest.Before(checkpoint)
}
