package migration

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/storage"

	"github.com/tidemark-streams/tidemark/statestore"
)

// gokaOffsetKey is the key beside the data whose value is the offset of the last record
// that was applied, in decimal digits; goka goes on behind it.
const gokaOffsetKey = "__offset"

// gokaTable is what a local storage of goka says of itself.
type gokaTable struct {
	// topic and partition of the name <topic>.<partition>; topic "" = the folder has the
	// store's name instead.
	topic     string
	partition int32
	// raw is the offset in it; nil = it says none, and reason why.
	raw    *int64
	reason string
	// cause is why it could not be opened: damage (a badDatabase), or something passing.
	cause error
}

// lookForGoka makes d one of goka's if it is a LevelDB with an offset in it, or one with the
// name that goka gives. folder is the one around it.
func (d *storeDir) lookForGoka(name, folder string) {
	if d.engine != engineLevelDB {
		return
	}
	topic, partition, named := parseGokaName(name)
	g := &gokaTable{topic: topic, partition: partition}
	found := false
	found, g.cause = g.read(d.path)
	// What cannot be read may be a segment of a window store with the same form of name.
	if found || named && !isSegment(name, folder) {
		d.engine, d.goka = engineGoka, g
	}
}

// parseGokaName takes <topic>.<partition> apart.
func parseGokaName(name string) (topic string, partition int32, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || !isTopicName(name[:i]) {
		return "", 0, false
	}
	n, err := strconv.ParseInt(name[i+1:], 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != name[i+1:] {
		return "", 0, false
	}
	return name[:i], int32(n), true
}

// read reads the offset. found tells whether there is one, readable or not.
func (g *gokaTable) read(dir string) (found bool, err error) {
	s, err := openGoka(dir)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var value []byte
	err = guarded(dir, func() error {
		value, err = s.db.Get([]byte(gokaOffsetKey), strictly)
		return err
	})
	if errors.Is(err, leveldb.ErrNotFound) {
		g.reason = "it holds no offset"
		return false, nil
	}
	if err != nil {
		return false, gokaError(dir, err)
	}
	raw, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		g.reason = fmt.Sprintf("its %s is %.40q, which is no offset", gokaOffsetKey, value)
		return true, nil
	}
	g.raw = &raw
	return true, nil
}

// gokaSource is a local storage of goka, opened without writing, as a Source.
type gokaSource struct {
	dir   string
	files storage.Storage
	db    *leveldb.DB
}

// Checksums are verified and a log that ends in the middle of a write is refused: by default
// goleveldb leaves out what is damaged, and an offset behind the gap would hide that.
var strictly = &opt.ReadOptions{DontFillCache: true, Strict: opt.StrictAll}

func openGoka(dir string) (*gokaSource, error) {
	// goleveldb would make the file, also where nothing may be written.
	if _, err := os.Lstat(filepath.Join(dir, "LOCK")); err != nil {
		return nil, fmt.Errorf("open LevelDB %s: its lock file: %w (every LevelDB has one; in a copy without it, an empty one will do)", dir, err)
	}
	files, err := storage.OpenFile(dir, true)
	if err != nil {
		return nil, gokaError(dir, err)
	}
	s := &gokaSource{dir: dir, files: files}
	// The pool has a goroutine, which would be left behind by a panic.
	err = guarded(dir, func() error {
		s.db, err = leveldb.Open(files, &opt.Options{ReadOnly: true, ErrorIfMissing: true, Strict: opt.StrictAll,
			BlockCacheCapacity: 1 << 20, OpenFilesCacheCapacity: 16, DisableBufferPool: true})
		return err
	})
	if err != nil {
		return nil, errors.Join(gokaError(dir, err), files.Close())
	}
	return s, nil
}

// guarded makes damage of a panic: goleveldb trusts what has the right checksum.
func guarded(dir string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &badDatabase{fmt.Errorf("LevelDB %s: %v", dir, p)}
		}
	}()
	return f()
}

// gokaError tells damage from what will be over.
func gokaError(dir string, err error) error {
	if bad, ok := errors.AsType[*badDatabase](err); ok {
		return bad
	}
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, storage.ErrLocked) {
		return fmt.Errorf("LevelDB %s: %w: stop the program that uses it", dir, statestore.ErrLocked)
	}
	return badOr(fmt.Errorf("LevelDB %s: %w", dir, err))
}

// Rows gives the entries in the order of their keys, without the offset.
func (s *gokaSource) Rows() iter.Seq2[statestore.Row, error] {
	return func(yield func(statestore.Row, error) bool) {
		i := s.db.NewIterator(nil, strictly)
		defer i.Release()
		next := func() (more bool, err error) {
			err = guarded(s.dir, func() error {
				more = i.Next()
				return i.Error()
			})
			return more, err
		}
		for {
			more, err := next()
			if err != nil {
				yield(statestore.Row{}, gokaError(s.dir, err))
				return
			}
			if !more {
				return
			}
			if string(i.Key()) != gokaOffsetKey && !yield(statestore.Row{Key: i.Key(), Value: i.Value()}, nil) {
				return
			}
		}
	}
}

// Close ends the reading.
func (s *gokaSource) Close() error {
	if err := errors.Join(s.db.Close(), s.files.Close()); err != nil {
		return fmt.Errorf("close LevelDB %s: %w", s.dir, err)
	}
	return nil
}
