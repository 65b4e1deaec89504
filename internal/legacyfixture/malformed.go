package legacyfixture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Malformed is an offset file that is wrong, or only odd.
type Malformed struct {
	// Migrator says in words what a careful migration does with it.
	Migrator string
	// Entries are the raw numbers that may be taken, by topic partition; nil = none, it is quarantined.
	Entries map[string]int64
	// Content is the file; nil for shapes that are no file, which a test builds itself.
	Content []byte
}

// MalformedFiles gives all below root, migration/testdata/malformed, by name.
func MalformedFiles(root string) (map[string]Malformed, error) {
	var index struct{ Cases map[string]Malformed }
	if err := readJSON(filepath.Join(root, "index.json"), &index); err != nil {
		return nil, err
	}
	for name, c := range index.Cases {
		content, err := os.ReadFile(filepath.Join(root, name, ".checkpoint"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if c.Content = content; err == nil && content == nil {
			c.Content = []byte{}
		}
		index.Cases[name] = c
	}
	if len(index.Cases) < 40 {
		return nil, fmt.Errorf("%s names %d cases", root, len(index.Cases))
	}
	return index.Cases, nil
}
