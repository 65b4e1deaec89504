package house

import (
	"os"
	"strings"
	"testing"
)

// Every module that go.mod requires for itself has its reason in docs/ARCHITECTURE.md.
func TestDependenciesHaveReasons(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	_, table, found := strings.Cut(read("docs/ARCHITECTURE.md"), "\n## Dependencies\n")
	if !found {
		t.Fatal("docs/ARCHITECTURE.md has no section Dependencies")
	}
	modules := 0
	for line := range strings.Lines(read("go.mod")) {
		f := strings.Fields(line)
		if len(f) != 2 || !strings.Contains(f[0], ".") || !strings.HasPrefix(f[1], "v") {
			continue // indirect ones have a comment behind them
		}
		modules++
		// kadm and kmsg are parts of the client, in its row.
		if last := f[0][strings.LastIndex(f[0], "/")+1:]; !strings.Contains(table, f[0]) && !strings.Contains(table, last+" "+f[1]) {
			t.Errorf("docs/ARCHITECTURE.md, Dependencies: %s %s has no row that says why", f[0], f[1])
		}
	}
	if modules < 10 {
		t.Errorf("found %d modules in go.mod", modules)
	}
}
