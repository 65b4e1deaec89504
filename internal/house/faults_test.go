package house

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// faults are those that the tables of docs/torture.md must have a row for, by the heading that their tables
// are under; ranges are "A1-A50".
var faults = map[string][]string{
	"### Kafka Streams, when it is run": {
		"A3", "A4", "A5", "A10", "A11", "A13-A19", "A17b", "A31-A35", "A46", "A49", "A50", "B23", "B45", "2.2", "3.5",
	},
	"### Go libraries":                          {"T1-T18"},
	"### Faults of Kafka Streams' state stores": {"A1-A50", "B1-B50"},
}

// spread gives the ids of a list with ranges.
func spread(ids []string) (all []string) {
	for _, id := range ids {
		from, to, isRange := strings.Cut(id, "-")
		if !isRange {
			all = append(all, id)
			continue
		}
		var first, last int
		if _, err := fmt.Sscanf(from[1:]+" "+to[1:], "%d %d", &first, &last); err != nil {
			panic(err)
		}
		for n := first; n <= last; n++ {
			all = append(all, fmt.Sprint(id[:1], n))
		}
	}
	return all
}

// An answer to a fault is a test, or the reason why it cannot happen.
var faultAnswer = regexp.MustCompile("` Test[A-Z]|\\bn/a[:,] \\S|^the same tests")

// checkFaults: under each heading each id has one row, and each row an answer. That the tests exist, and where, is
// for checkTestNames.
func checkFaults(name, text string, faults map[string][]string) (findings []string) {
	heading, inIDs := "", false
	rows := map[string]map[string]int{} // by heading and id
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") {
			heading, inIDs = line, false
			rows[heading] = map[string]int{}
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			inIDs = false
		case cells[0] == "id":
			inIDs = true
		case !inIDs || strings.HasPrefix(cells[0], "---"):
		default:
			if len(cells) != 3 || cells[1] == "" || !faultAnswer.MatchString(cells[2]) {
				findings = append(findings, fmt.Sprintf("%s:%d: a fault needs an id, what it is, and a test or \"n/a\" with the reason", name, i+1))
			}
			for id := range strings.SplitSeq(cells[0], ", ") {
				rows[heading][id]++
			}
		}
	}
	for heading, ids := range faults {
		for _, id := range spread(ids) {
			if n := rows[heading][id]; n != 1 {
				findings = append(findings, fmt.Sprintf("%s: under %q fault %s has %d rows", name, heading, id, n))
			}
			delete(rows[heading], id)
		}
		for id := range rows[heading] {
			findings = append(findings, fmt.Sprintf("%s: under %q there is no fault %q", name, heading, id))
		}
	}
	return findings
}

func TestEveryFaultHasARow(t *testing.T) {
	load(t) // changes to the root
	const name = "docs/torture.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	report(t, checkFaults(name, string(text), faults))
}

func TestFaultRuleFindsWhatItForbids(t *testing.T) {
	const head = "## X\n\n| id | fault | here |\n|---|---|---|\n"
	check := func(text string) []string {
		return checkFaults("d.md", text, map[string][]string{"## X": {"A1-A3", "2.2"}})
	}
	const rest = "| A3, 2.2 | f | n/a: it has none |\n"
	report(t, check(head+"| A1, A2 | f | `p` TestOne |\n"+rest+"\n## Y\n\n| word | x | y |\n| A1 | no | id |\n"))
	breaks(t, check(head+"| A1 | f | `p` TestOne |\n"+rest), `A2 has 0 rows`)
	breaks(t, check(head+"| A1 | f | `p` TestOne |\n"+rest+"\n## Y\n| id | fault | here |\n| A2 | f | `p` TestOne |\n"), `A2 has 0 rows`)
	breaks(t, check(head+"| A1, A2 | f | `p` TestOne |\n| A2 | f | `p` TestOne |\n"+rest), "A2 has 2 rows")
	breaks(t, check(head+"| A1, A2, A4 | f | `p` TestOne |\n"+rest), `no fault "A4"`)
	for _, row := range []string{"| A1, A2 | f | TestOne |", "| A1, A2 | f | n/a |", "| A1, A2 | f | |", "| A1, A2 | | `p` TestOne |", "| A1, A2 | `p` TestOne |"} {
		breaks(t, check(head+row+"\n"+rest), "d.md:5", "needs an id, what it is, and a test")
	}
}
