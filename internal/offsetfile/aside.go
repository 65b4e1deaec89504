package offsetfile

import (
	"strings"
	"time"
)

const (
	// Migrated stands behind the name of a file that has been taken over. Such files are removed after the
	// next clean close.
	Migrated = ".migrated"
	// Quarantined stands behind the name of a file that cannot be trusted, before a time. Nobody removes those.
	Quarantined = ".quarantined-"
)

// QuarantineSuffix is what the name of a file gets that is quarantined now.
func QuarantineSuffix(now time.Time) string { return Quarantined + now.UTC().Format("20060102T150405") }

// IsMigrated tells whether a name is that of a file that was taken over: it ends so, or with a number behind it,
// as when the name was taken already.
func IsMigrated(name string) bool {
	i := strings.LastIndex(name, Migrated)
	if i < 0 {
		return false
	}
	rest := name[i+len(Migrated):]
	number, numbered := strings.CutPrefix(rest, "-")
	return rest == "" || numbered && number != "" && strings.Trim(number, "0123456789") == ""
}

// IsSetAside tells whether a name is that of a file that was taken over or quarantined.
func IsSetAside(name string) bool { return IsMigrated(name) || strings.Contains(name, Quarantined) }
