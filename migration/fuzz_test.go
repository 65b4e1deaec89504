package migration

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// FuzzNames: whatever lies in a state directory, planning neither panics nor fails for it, nor takes memory without bound.
func FuzzNames(f *testing.F) {
	for _, name := range []string{".checkpoint_x", "x.position", ".checkpoint_.position", ".position", "x.migrated-2", "rocksdb", "0_0", "__a__", "a.0"} {
		f.Add(name, "0\n1\napp-kv-changelog 0 41\n")
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		if name == "" || strings.ContainsAny(name, "/\x00") || len(name) > 100 || name == "." || name == ".." {
			t.Skip()
		}
		dir := t.TempDir()
		for _, parent := range []string{"app/0_0", "app/0_0/folder", "app/0_0/folder/store"} {
			if err := os.MkdirAll(filepath.Join(dir, parent), 0o700); err != nil {
				t.Fatal(err)
			}
			_ = os.WriteFile(filepath.Join(dir, parent, name), []byte(text), 0o600) // a name that is taken is no case
		}
		before := allocated()
		r, err := Plan(t.Context(), dir, Options{App: "app", Guarantee: AtLeastOnce, Logger: quiet})
		if used, most := allocated()-before, 32<<20+1000*uint64(len(text)); used > most {
			t.Fatalf("%d bytes allocated for files of %d", used, len(text))
		}
		if err != nil || len(r.Tasks) == 0 {
			t.Fatalf("%v, %+v", err, r)
		}
	})
}

// FuzzProcessFile: no panic, memory by the size of the file, and only a UUID is in order.
func FuzzProcessFile(f *testing.F) {
	for _, text := range []string{``, `{}`, `{"processId":"9e5b1f06-0d1e-4c3a-8a52-0d6a3f0f2b11"}`, `{"processId":"9e5b1f06`, `{"processId":7}`, `[`,
		`{"processid":"9e5b1f06-0d1e-4c3a-8a52-0d6a3f0f2b11","processId":null}`, "\x00\x00", strings.Repeat("[", 20000), `{"x":` + strings.Repeat(`{"x":`, 5000)} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), processName)
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		before := allocated()
		got := readProcessFile(path)
		if used, most := allocated()-before, 1<<20+100*uint64(len(text)); used > most {
			t.Fatalf("%d bytes allocated for a file of %d", used, len(text))
		}
		if got.Kind != KindProcess || got.Path != path || len(got.Reason) > 1000 {
			t.Fatalf("%+v", got)
		}
		if ok := got.Status == StatusOK; !ok && got.Status != StatusQuarantined || ok != (got.Reason == "") || ok && !strings.Contains(string(text), "{") {
			t.Fatalf("%q is %+v", text, got)
		}
	})
}

// allocated is what the process has allocated since it began.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
