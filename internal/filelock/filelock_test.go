package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecondTakeNamesTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := Take(path, "running")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Take(path, "running")
	var held *HeldError
	if !errors.As(err, &held) {
		t.Fatalf("second Take: %v, want a HeldError", err)
	}
	if held.Holder.PID != os.Getpid() || held.Holder.State != "running" || held.Holder.Host == "" || held.Holder.Start.IsZero() {
		t.Errorf("holder = %+v", held.Holder)
	}
	if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), held.Holder.Host) {
		t.Errorf("error %q does not name file and host", err)
	}
	if err := l.SetState("closed"); err != nil { // shorter than before: the rest must be cut
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	l, err = Take(path, "again")
	if err != nil {
		t.Fatalf("Take after Close: %v", err)
	}
	defer l.Close()
	if p := l.Previous(); p.State != "closed" || p.PID != os.Getpid() {
		t.Errorf("Previous = %+v, want the text of the first holder", p)
	}
}

func TestTextThatCannotBeReadIsNotAnError(t *testing.T) {
	for _, text := range []string{"", "{", "{}\n", `{"pid":-3}`, "\x00\x00\x00", strings.Repeat("x", 10000)} {
		path := filepath.Join(t.TempDir(), "lock")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Take(path, "")
		if err != nil {
			t.Errorf("Take over %.10q: %v", text, err)
			continue
		}
		if l.Previous() != (Holder{}) {
			t.Errorf("Previous over %.10q = %+v", text, l.Previous())
		}
		_, err = Take(path, "")
		if err == nil || !strings.Contains(err.Error(), "process ") {
			t.Errorf("second Take over %.10q: %v", text, err)
		}
		l.Close()
	}
}

func TestHolderWithoutNameIsStillHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := flock(f); err != nil {
		t.Fatal(err)
	}
	_, err = Take(path, "")
	if err == nil || !strings.Contains(err.Error(), "has not written its name yet") {
		t.Errorf("Take: %v", err)
	}
}

func TestNoSuchFolder(t *testing.T) {
	_, err := Take(filepath.Join(t.TempDir(), "no", "lock"), "")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Take: %v", err)
	}
}
