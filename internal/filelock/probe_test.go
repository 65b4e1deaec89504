package filelock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestProbe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if _, held, err := Probe(path); held || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: held %v, %v", held, err)
	}
	l, err := Take(path, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // probing does not take it from the holder
		h, held, err := Probe(path)
		if err != nil || !held || h.PID != os.Getpid() {
			t.Errorf("held by this process: %v, %v, %v", h, held, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // nor does it keep it
		if _, held, err := Probe(path); held || err != nil {
			t.Errorf("released: held %v, %v", held, err)
		}
	}
}
