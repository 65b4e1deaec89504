package statedir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// loadProcessID reads the process id, or makes one in a directory that has none.
func loadProcessID(dir string) (string, error) {
	path := filepath.Join(dir, processIDFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		id := newUUID()
		if err := writeDurably(path, []byte(id+"\n")); err != nil {
			return "", fmt.Errorf("write process id: %w", err)
		}
		return id, nil
	}
	if err != nil {
		return "", fmt.Errorf("read process id: %w", err)
	}
	id := strings.TrimSuffix(string(text), "\n")
	if !uuidForm.MatchString(id) {
		// Not replaced silently: a new id is a new member, and the group waits for the
		// old one until its session times out. Our own writes cannot leave this behind.
		return "", fmt.Errorf("%s holds %.60q, which is not a process id: delete the file to get a new one", path, id)
	}
	return id, nil
}

// newUUID returns a random (version 4) UUID in its text form.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented to never fail
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
