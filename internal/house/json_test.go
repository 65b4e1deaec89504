package house

import (
	"fmt"
	"go/ast"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// foreignJSON are names that another program has chosen.
var foreignJSON = []string{"processId"}

var snakeCase = regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`)

// checkJSON: what scripts read has one form of names.
func checkJSON(files []source) (findings []string) {
	for _, s := range files {
		if s.test {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			f, ok := n.(*ast.Field)
			if !ok || f.Tag == nil {
				return true
			}
			tag, ok := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Lookup("json")
			name, _, _ := strings.Cut(tag, ",")
			if ok && name != "" && name != "-" && !snakeCase.MatchString(name) && !slices.Contains(foreignJSON, name) {
				findings = append(findings, fmt.Sprintf("%s: the JSON name %q is not in snake_case, as all others are", s.at(f), name))
			}
			return true
		})
	}
	return findings
}

func TestJSONNames(t *testing.T) { report(t, checkJSON(load(t))) }

func TestJSONRuleFindsWhatItForbids(t *testing.T) {
	field := func(tag string) []source {
		return []source{parse(t, "p/p.go", "package p\ntype t struct { A int `"+tag+"` }")}
	}
	for _, tag := range []string{`json:"dryRun"`, `json:"Dry,omitempty"`, `json:"dry-run"`, `json:"dry__run"`} {
		breaks(t, checkJSON(field(tag)), "snake_case")
	}
	for _, tag := range []string{`json:"dry_run"`, `json:"a,omitempty"`, `json:"-"`, `json:",omitempty"`, `xml:"dryRun"`, `json:"p99_us"`, `json:"processId"`} {
		report(t, checkJSON(field(tag)))
	}
}
