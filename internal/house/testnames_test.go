package house

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Words of a document that matter here: something in backquotes, or the name of a test.
var testWords = regexp.MustCompile("`[^`]*`|\\bTest[A-Z]\\w*")

// checkTestNames: a document that says "`task` TestReload, TestDoubt" promises that package task has tests of
// these names; one that names no package before it, that some package has. tests gives the packages by test.
func checkTestNames(name, text string, tests map[string][]string) (findings []string) {
	packages := map[string]bool{}
	for _, in := range tests {
		for _, dir := range in {
			packages[dir] = true
		}
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		dir := ""
		for _, word := range testWords.FindAllString(line, -1) {
			quoted := strings.Trim(word, "`")
			switch {
			case packages[quoted]:
				dir = quoted
			case !testName.MatchString(quoted):
			case len(tests[quoted]) == 0:
				findings = append(findings, fmt.Sprintf("%s:%d: there is no test %s", name, n, quoted))
			case dir != "" && !slices.Contains(tests[quoted], dir):
				findings = append(findings, fmt.Sprintf("%s:%d: %s is not in %s but in %s", name, n, quoted, dir, strings.Join(tests[quoted], ", ")))
			}
		}
	}
	return findings
}

var testName = regexp.MustCompile(`^Test[A-Z]\w*$`)

// testsOf gives the packages that have a test, by its name.
func testsOf(files []source) map[string][]string {
	tests := map[string][]string{}
	for _, s := range files {
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && s.test && f.Recv == nil && testName.MatchString(f.Name.Name) && !slices.Contains(tests[f.Name.Name], s.dir) {
				tests[f.Name.Name] = append(tests[f.Name.Name], s.dir)
			}
		}
	}
	return tests
}

func TestDocumentsNameTestsThatExist(t *testing.T) {
	tests := testsOf(load(t)) // changes to the root
	names, err := filepath.Glob("docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("documents: %v, %v", names, err)
	}
	for _, name := range append(names, "README.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkTestNames(name, string(text), tests))
	}
}

func TestTestNameRuleFindsWhatItForbids(t *testing.T) {
	tests := testsOf([]source{
		parse(t, "a/a_test.go", "package a\nfunc TestOne() {}\nfunc TestBoth() {}"),
		parse(t, "b/b_test.go", "package b\nfunc TestBoth() {}\nfunc (x) TestMethod() {}"),
		parse(t, "b/b.go", "package b\nfunc TestNone() {}"),
	})
	breaks(t, checkTestNames("d.md", "x\n| `a` TestOne, TestTwo |", tests), "d.md:2", "TestTwo")
	breaks(t, checkTestNames("d.md", "`a` TestOne; `b` TestBoth, TestOne", tests), "TestOne", "not in b but in a")
	breaks(t, checkTestNames("d.md", "(`TestMethod` in `b`)", tests), "TestMethod")
	breaks(t, checkTestNames("d.md", "TestNone", tests), "TestNone")
	report(t, checkTestNames("d.md", "`a` TestOne, `TestBoth` (`x` y); `b` TestBoth\nTestOne and Testing, `TestOne` in `a`", tests))
}
