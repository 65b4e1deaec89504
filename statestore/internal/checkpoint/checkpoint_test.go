package checkpoint

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tidemark-streams/tidemark/internal/offsetfile"
)

func inDirectory(t *testing.T) *vfs.MemFS {
	fs := vfs.NewCrashableMem()
	root, err := fs.OpenDir("/")
	if err = errors.Join(err, fs.MkdirAll("d", 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(root.Sync(), root.Close()); err != nil {
		t.Fatal(err)
	}
	return fs
}

// TestWriteIsWhole fails, and crashes, at every step: the file is there as before or as
// after, and as after when Write returned.
func TestWriteIsWhole(t *testing.T) {
	before, after := offsetfile.Line{Topic: "topic", Partition: 3, Offset: 10}, offsetfile.Line{Topic: "topic", Partition: 3, Offset: 123456789}
	for at := 1; ; at++ {
		fs := inDirectory(t)
		if err := Write(fs, "d/.checkpoint_s", before); err != nil {
			t.Fatal(err)
		}
		n, hit := 0, false
		failing := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
				return nil
			}
			if n++; n == at {
				hit = true
				return errors.New("injected")
			}
			return nil
		}))
		err := Write(failing, "d/.checkpoint_s", after)
		if !hit {
			if err != nil {
				t.Fatal(err)
			}
			if at < 5 {
				t.Fatalf("Write has %d steps", at-1)
			}
			return
		}
		if err == nil {
			t.Errorf("step %d failed, and Write says nothing", at)
		}
		for _, left := range []vfs.FS{fs, fs.CrashClone(vfs.CrashCloneCfg{})} {
			got, exists, err := Read(left, "d/.checkpoint_s")
			if err != nil || !exists || len(got.Entries) != 1 || got.Entries[0] != before && got.Entries[0] != after {
				t.Errorf("after a failure of step %d: %v, %v, %v", at, got, exists, err)
			}
		}
	}
}

func TestRemove(t *testing.T) {
	fs := inDirectory(t)
	if err := Write(fs, "d/c", offsetfile.Line{Topic: "t", Offset: 1}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Remove(fs, "d/c"); err != nil {
			t.Fatal(err)
		}
	}
	if _, exists, err := Read(fs.CrashClone(vfs.CrashCloneCfg{}), "d/c"); exists || err != nil {
		t.Errorf("after Remove and a crash: %v, %v", exists, err)
	}
}

func TestAside(t *testing.T) {
	fs := inDirectory(t)
	for n, want := range []string{"d/c.x", "d/c.x-2", "d/c.x-3"} {
		if err := Write(fs, "d/c", offsetfile.Line{Topic: "t", Offset: int64(n)}); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			if err := Keep(fs, "d/c", ".x"); err != nil {
				t.Fatal(err)
			}
		} else if to, err := SetAside(fs, "d/c", ".x"); err != nil || to != want {
			t.Fatalf("%s, %v; want %s", to, err, want)
		}
		left := fs.CrashClone(vfs.CrashCloneCfg{})
		if got, _, err := Read(left, want); err != nil || len(got.Entries) != 1 || got.Entries[0].Offset != int64(n) {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
		if _, exists, err := Read(left, "d/c"); exists != (n == 1) || err != nil {
			t.Errorf("at its place after %d: %v, %v", n, exists, err)
		}
	}
}
