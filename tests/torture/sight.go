package main

import (
	"fmt"
	"regexp"

	"github.com/tidemark-streams/tidemark/streams"
)

// sight is what a run saw when it began to process.
type sight struct {
	// Tasks that have stores, and how many of them had something in it.
	tasks, existing int
	// Restored are changelog records that were applied; whole is how far the changelogs went then, markers of transactions included.
	restored, whole int64
}

const sawText = "tasks are taken over"

func see(s streams.Status) (saw sight) {
	for _, w := range s.Workers {
		for _, t := range w.Tasks {
			if len(t.Changelog) == 0 {
				continue // it has no store
			}
			saw.tasks++
			if t.Found.Existing {
				saw.existing++
			}
			for _, r := range t.Restore {
				saw.restored += r.Records
			}
			for _, o := range t.Changelog {
				next, _ := o.Next()
				saw.whole += next
			}
		}
	}
	return saw
}

const sightForm = "tasks %d existing %d restored %d whole %d"

func (s sight) String() string {
	return fmt.Sprintf(sightForm, s.tasks, s.existing, s.restored, s.whole)
}

var sawLine = regexp.MustCompile(`msg="` + sawText + `" run=(\S+) saw="([^"]*)"`)

// sights finds in a process's log what each run saw first.
func sights(log []byte) map[string]sight {
	all := map[string]sight{}
	for _, m := range sawLine.FindAllSubmatch(log, -1) {
		var s sight
		if _, err := fmt.Sscanf(string(m[2]), sightForm, &s.tasks, &s.existing, &s.restored, &s.whole); err != nil {
			continue // it was killed while it wrote
		}
		if _, again := all[string(m[1])]; !again {
			all[string(m[1])] = s
		}
	}
	return all
}
