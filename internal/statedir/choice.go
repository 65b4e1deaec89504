package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const choiceFile = "offsets-choice"

// Choice returns the operator's choice for a conflict between stores and offsets that was recorded
// for the next start; empty if there is none.
func (d *Dir) Choice() (string, error) {
	text, err := os.ReadFile(filepath.Join(d.path, choiceFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the operator's choice: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// RecordChoice records a choice durably, in the place of an earlier one.
func (d *Dir) RecordChoice(choice string) error {
	if err := writeDurably(filepath.Join(d.path, choiceFile), []byte(choice+"\n")); err != nil {
		return fmt.Errorf("record the operator's choice: %w", err)
	}
	return nil
}

// ClearChoice removes the choice: it was acted upon.
func (d *Dir) ClearChoice() error {
	if err := os.Remove(filepath.Join(d.path, choiceFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clear the operator's choice: %w", err)
	}
	return syncDir(d.path)
}
