package statedir

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// The limit of Kafka for a topic's name. The app id is the first part of longer names
// (changelogs, the placement topic); whoever makes those checks them as a whole.
const maxAppIDLength = 249

// ValidateAppID returns an error when id cannot be the application id: it begins the
// names of topics and is the name of a directory, so it has Kafka's limits for topic
// names (1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', but not "." and
// not ".."). A name that something inside an application's directory has is refused too: whoever
// looks at the directories could not tell the two apart.
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
	if what := reserved(id); what != "" {
		return fmt.Errorf("app id %q is the name of %s inside an application's directory: choose another", id, what)
	}
	return nil
}

// reserved says what has this name, or one of this form, in an application's directory of Tidemark or Kafka Streams.
func reserved(name string) string {
	name = strings.TrimSuffix(name, ".tmp") // while it is written
	switch name {
	case lockFile, processIDFile, transactionalIDsFile, choiceFile, anewFile, asideFile, ".lock", "kafka-streams-process-metadata":
		return "a file"
	case "global":
		return "the global stores"
	}
	task := name
	for _, mark := range []string{asideMark, keptMark} {
		task, _, _ = strings.Cut(task, mark)
	}
	switch {
	case taskForm.MatchString(task):
		return "a task's directory"
	case strings.HasPrefix(name, trashMark):
		return "what is being removed"
	case len(name) > 4 && strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__"):
		return "a named topology"
	}
	return ""
}

// taskForm also takes spellings that are no task's, 00_1: a person would take them for one.
var taskForm = regexp.MustCompile(`^[0-9]+_[0-9]+$`)

func isTopicRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}
