package statestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func init() {
	children["descriptors"] = descriptorsChild
}

func TestCheckDescriptors(t *testing.T) {
	for _, test := range []struct {
		tasks, tables int
		limit         uint64
		needed        string // "": enough
	}{
		{0, 1000, 1256, ""},
		{10, 256, 1024, ""},
		{100, 1000, 2056, ""},
		{100, 1000, 2055, "2056 are needed (8 for each of 100 task stores, 1000 for their table files"},
		{5000, 1000, 20000, "ulimit -n 41256"},
	} {
		err := checkDescriptors(test.tasks, test.tables, test.limit)
		if (err == nil) != (test.needed == "") || err != nil && !strings.Contains(err.Error(), test.needed) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	r, err := NewResources(ResourceOptions{})
	must(t, err)
	if err := r.CheckFileDescriptors(1 << 40); err == nil || !strings.Contains(err.Error(), "LimitNOFILE=") {
		t.Errorf("for very many task stores: %v", err)
	}
	must(t, r.Close())
}

// A process that has no descriptors left: the task stores that are open go on, the next one
// says what is missing.
func TestTooManyOpenFiles(t *testing.T) {
	out, err := child(t, "descriptors")
	if err != nil || !strings.Contains(out, "survived") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func descriptorsChild() {
	if err := runOutOfDescriptors(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("survived")
}

func runOutOfDescriptors() error {
	dir, err := os.MkdirTemp("", "descriptors")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 100, Max: 100}); err != nil {
		return err
	}
	r, err := NewResources(ResourceOptions{})
	if err != nil {
		return err
	}
	if err := r.CheckFileDescriptors(20); err == nil || !strings.Contains(err.Error(), "this process may have 100") {
		return fmt.Errorf("check: %w", err)
	}
	c := &script{}
	var open []*TaskStore
	for len(open) < 20 {
		s, err := c.open(filepath.Join(dir, fmt.Sprint("0_", len(open))), Options{Resources: r, Logger: quiet()})
		if err != nil {
			if !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), fmt.Sprint("0_", len(open))) || !strings.Contains(err.Error(), "ulimit -n") {
				return fmt.Errorf("open task store %d: %w; want its path, the cause, and what to do", len(open), err)
			}
			break
		}
		open = append(open, s)
	}
	if len(open) < 4 || len(open) == 20 {
		return fmt.Errorf("%d task stores could be opened with 100 descriptors", len(open))
	}
	for _, s := range open { // they have what they need
		for n := 1; n <= 3; n++ {
			if err := c.commit(s, n); err != nil {
				return err
			}
		}
	}
	for _, s := range open[1:] { // one by one, so that there is room to flush
		if err := s.Close(); err != nil && !errors.Is(err, syscall.EMFILE) {
			return err
		}
	}
	return open[0].Close()
}
