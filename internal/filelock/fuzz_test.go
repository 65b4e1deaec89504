package filelock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzRead: whatever is in a lock file, it is a holder with a process id or it is none, and the lock can be taken.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"", "{}", `{"pid":7,"host":"h","start":"2024-05-06T07:08:09Z","state":"running"}` + "\n", `{"pid":-1}`, `{"pid":1e9,"start":1}`,
		`{"pid":7}{"pid":8}`, "\x00\x00", strings.Repeat("[", 4000)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "lock")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		h, ok := read(file)
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if ok != (h.PID > 0) || !ok && h != (Holder{}) || h.String() == "" {
			t.Errorf("%q: %+v, %t", text, h, ok)
		}
		l, err := Take(path, "running")
		if err != nil {
			t.Fatal(err)
		}
		if p := l.Previous(); p.PID != h.PID || p.Host != h.Host || p.State != h.State || !p.Start.Equal(h.Start) {
			t.Errorf("previous %+v; read %+v", p, h)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l, err = Take(path, ""); err != nil {
			t.Fatal(err)
		}
		if p := l.Previous(); p.PID != os.Getpid() || p.State != "running" || time.Since(p.Start) > time.Hour {
			t.Errorf("behind it: %+v", p)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
