package house

import (
	"fmt"
	"go/ast"
	"testing"
)

// Tests that may sleep, with the reason why no condition can be waited for.
var sleepers = map[string]string{}

// checkSleep: a test that sleeps is slow on a fast machine and wrong on a slow one.
func checkSleep(files []source) (findings []string) {
	for _, s := range files {
		if !s.test || sleepers[s.name] != "" {
			continue
		}
		name := "time"
		if spec := s.imports()["time"]; spec != nil && spec.Name != nil {
			name = spec.Name.Name
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if x, ok := n.(*ast.SelectorExpr); ok && x.Sel.Name == "Sleep" {
				if id, ok := x.X.(*ast.Ident); ok && id.Name == name {
					findings = append(findings, fmt.Sprintf("%s: time.Sleep in a test: wait for the condition (a channel, a poll with a deadline, testing/synctest), or name the file in internal/house/sleep_test.go with the reason", s.at(n)))
				}
			}
			return true
		})
	}
	return findings
}

func TestTestsDoNotSleep(t *testing.T) {
	files := load(t)
	report(t, checkSleep(files))
	there := map[string]bool{}
	for _, s := range files {
		there[s.name] = true
	}
	for name := range sleepers {
		if !there[name] {
			t.Errorf("the list of tests that may sleep names %s, which is gone", name)
		}
	}
}

func TestSleepRuleFindsWhatItForbids(t *testing.T) {
	breaks(t, checkSleep([]source{parse(t, "p/p_test.go", "package p\nimport \"time\"\nfunc f() { time.Sleep(1) }")}), "p/p_test.go:3", "time.Sleep")
	breaks(t, checkSleep([]source{parse(t, "p/p_test.go", "package p\nimport clock \"time\"\nvar f = clock.Sleep")}), "time.Sleep")
	report(t, checkSleep([]source{parse(t, "p/p.go", "package p\nimport \"time\"\nfunc f() { time.Sleep(1) }")}))
	report(t, checkSleep([]source{parse(t, "p/p_test.go", "package p\nfunc f() { broker.Sleep(1) }")}))
}
