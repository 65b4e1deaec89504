package statedir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestKeep(t *testing.T) {
	d, err := Open(t.TempDir(), "app")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	copied := 0
	snapshot := func(dir string) error {
		copied++
		return os.Mkdir(dir, 0o700)
	}
	// What a crash in the middle left does not count.
	if err := os.Mkdir(d.TaskDir("0_1")+keptMark+"20200101T000000Z.partial-x", 0o700); err != nil {
		t.Fatal(err)
	}
	path, made, err := d.Keep("0_1", "the offset does not fit", snapshot)
	if err != nil || !made {
		t.Fatalf("%v, %v", made, err)
	}
	again, made, err := d.Keep("0_1", "another reason", snapshot)
	if err != nil || made || again != path || copied != 1 {
		t.Errorf("the second time: %q, %v, %v; %d copies", again, made, err, copied)
	}
	aside, err := d.AsideDirs()
	if err != nil || len(aside) != 1 || aside[0].Task != "0_1" || !strings.Contains(aside[0].Reason, "the offset does not fit") {
		t.Errorf("set aside: %+v, %v", aside, err)
	}
	// Only what is old is removed, whatever the delay of tasks is.
	old := d.TaskDir("0_2") + keptMark + time.Now().Add(-25*time.Hour).UTC().Format(nameTime)
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Clean(context.Background(), CleanOptions{OlderThan: time.Minute, LastOwned: func(string) (time.Time, error) { return time.Now(), nil }}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old copy: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	// A copy that fails is an error, and none the next time.
	broken := errors.New("no space")
	if _, _, err := d.Keep("0_3", "", func(string) error { return broken }); !errors.Is(err, broken) || !strings.Contains(err.Error(), filepath.Base(d.TaskDir("0_3"))) {
		t.Errorf("error %v", err)
	}
	if _, _, err := d.Keep("nonsense", "", snapshot); err == nil {
		t.Error("no error for what is no task")
	}
}
