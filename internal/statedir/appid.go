package statedir

import (
	"errors"
	"fmt"
)

// The limit of Kafka for a topic's name. The app id is the first part of longer names
// (changelogs, the placement topic); whoever makes those checks them as a whole.
const maxAppIDLength = 249

// ValidateAppID returns an error when id cannot be the application id: it begins the
// names of topics and is the name of a directory, so it has Kafka's limits for topic
// names (1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', but not "." and
// not "..").
func ValidateAppID(id string) error {
	const rule = "it begins topic names, so it is made of a-z, A-Z, 0-9, '.', '_' and '-'"
	switch {
	case id == "":
		return errors.New("app id is empty: it names the consumer group, the internal topics and the state directory")
	case id == "." || id == "..":
		return fmt.Errorf("app id %q cannot name a topic or a directory: choose another", id)
	case len(id) > maxAppIDLength:
		return fmt.Errorf("app id %.20q... has %d bytes, Kafka's limit for topic names is %d", id, len(id), maxAppIDLength)
	}
	for _, r := range id {
		if !isTopicRune(r) {
			return fmt.Errorf("app id %q contains %q: %s", id, r, rule)
		}
	}
	return nil
}

func isTopicRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}
