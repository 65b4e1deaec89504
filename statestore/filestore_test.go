package statestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fileStore is a user's store as one might write it: all rows in memory, and a file to which
// every batch is appended. A frame of the file is its length, a checksum and the content;
// what is behind the first frame that is not whole was never there.
//
// One that manages offsets writes a batch with its point as one frame. One that does not
// writes a frame for each row: a crash may leave a part of a batch.
type fileStore struct {
	fs      vfs.FS
	path    string
	manages bool
	closed  bool

	mu   sync.RWMutex
	rows []Row // sorted, replaced and never changed
	at   StorePoint
	f    vfs.File
}

func openFileStore(fs vfs.FS, path string, manages bool) (*fileStore, error) {
	s := &fileStore{fs: fs, path: path, manages: manages}
	if err := makeDir(fs, fs.PathDir(path)); err != nil {
		return nil, err
	}
	names, err := fs.List(fs.PathDir(path))
	if err != nil {
		return nil, err
	}
	var content []byte
	if slices.Contains(names, fs.PathBase(path)) {
		if content, err = readWhole(fs, path); err != nil {
			return nil, err
		}
	}
	// Written anew at each open: a store of tests is small, and vfs cannot append.
	if s.f, err = fs.Create(path+".new", vfs.WriteCategoryUnspecified); err != nil {
		return nil, err
	}
	for {
		frame, rest, ok := cutFrame(content)
		if !ok {
			break
		}
		if err := s.load(frame); err != nil {
			return nil, err
		}
		if err := s.writeFrame(frame); err != nil {
			return nil, err
		}
		content = rest
	}
	err = errors.Join(s.f.Sync(), fs.Rename(path+".new", path), syncDir(fs, fs.PathDir(path)))
	return s, err
}

func readWhole(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

func cutFrame(b []byte) (frame, rest []byte, ok bool) {
	if len(b) < 8 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint32(b))
	if n > len(b)-8 || crc32.ChecksumIEEE(b[8:8+n]) != binary.BigEndian.Uint32(b[4:]) {
		return nil, nil, false
	}
	return b[8 : 8+n], b[8+n:], true
}

// openWithFile opens a task store that has one store, a file of the program's own: spec.Store, which is opened anew too.
func openWithFile(t *testing.T, fs, files vfs.FS, spec *Spec, manages bool) *TaskStore {
	t.Helper()
	file, err := openFileStore(files, "files/own", manages)
	must(t, err)
	spec.Store = file
	return openStore(t, "t", memOptions(fs), *spec)
}

func (s *fileStore) writeFrame(frame []byte) error {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(frame)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(frame))
	_, err := s.f.Write(append(b, frame...))
	return err
}

// encode gives a frame: the point as text with its length, then the rows; value length -1
// deletes.
func encodeFrame(writes []Row, at StorePoint) ([]byte, error) {
	text, err := at.MarshalText()
	if err != nil {
		return nil, err
	}
	frame := append(binary.AppendUvarint(nil, uint64(len(text))), text...)
	for _, w := range writes {
		frame = append(binary.AppendUvarint(frame, uint64(len(w.Key))), w.Key...)
		n := int64(len(w.Value))
		if w.Value == nil {
			n = -1
		}
		frame = append(binary.AppendVarint(frame, n), w.Value...)
	}
	return frame, nil
}

func (s *fileStore) load(frame []byte) error {
	n, k := binary.Uvarint(frame)
	if err := s.at.UnmarshalText(frame[k : k+int(n)]); err != nil {
		return err
	}
	var writes []Row
	for b := frame[k+int(n):]; len(b) > 0; {
		n, k := binary.Uvarint(b)
		key, rest := b[k:k+int(n)], b[k+int(n):]
		v, k := binary.Varint(rest)
		w := Row{Key: key}
		b = rest[k:]
		if v >= 0 {
			w.Value, b = b[:v:v], b[v:]
		}
		writes = append(writes, w)
	}
	s.put(writes)
	return nil
}

func (s *fileStore) put(writes []Row) {
	rows := slices.Clone(s.rows)
	for _, w := range writes {
		i, found := findRow(rows, w.Key)
		switch {
		case w.Value == nil && found:
			rows = slices.Delete(rows, i, i+1)
		case w.Value == nil:
		case found:
			rows[i] = Row{rows[i].Key, append([]byte{}, w.Value...)}
		default:
			rows = slices.Insert(rows, i, Row{append([]byte{}, w.Key...), append([]byte{}, w.Value...)})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = rows
}

func findRow(rows []Row, key []byte) (int, bool) {
	return slices.BinarySearchFunc(rows, key, func(r Row, key []byte) int { return bytes.Compare(r.Key, key) })
}

func (s *fileStore) now() []Row {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.rows
}

func (s *fileStore) Get(key []byte) ([]byte, bool, error) {
	rows := s.now()
	if i, ok := findRow(rows, key); ok {
		return rows[i].Value, true, nil
	}
	return nil, false, nil
}

func (s *fileStore) Range(from, to []byte, reverse bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		rows := s.now()
		i, _ := findRow(rows, from)
		j := len(rows)
		if to != nil {
			j, _ = findRow(rows, to)
		}
		rows = slices.Clone(rows[i:max(i, j)])
		if reverse {
			slices.Reverse(rows)
		}
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (s *fileStore) Apply(writes []Row, at StorePoint) error {
	if s.manages {
		frame, err := encodeFrame(writes, at)
		if err != nil {
			return err
		}
		if err := s.writeFrame(frame); err != nil {
			return err
		}
		s.at = at
	} else {
		for i := range writes {
			frame, err := encodeFrame(writes[i:i+1], StorePoint{})
			if err != nil {
				return err
			}
			if err := s.writeFrame(frame); err != nil {
				return fmt.Errorf("write row %d of %d: %w", i, len(writes), err)
			}
		}
	}
	s.put(writes)
	return nil
}

func (s *fileStore) Sync() error                { return s.f.Sync() }
func (s *fileStore) ManagesOffsets() bool       { return s.manages }
func (s *fileStore) Point() (StorePoint, error) { return s.at, nil }

func (s *fileStore) Close() error {
	if s.closed {
		return errors.New("closed twice")
	}
	s.closed = true
	return errors.Join(s.f.Sync(), s.f.Close())
}
