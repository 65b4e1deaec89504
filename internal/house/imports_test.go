package house

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rule says what a package may import of this module, besides the packages of leaves
// and its own internal directory. The first rule that matches a package counts.
type rule struct {
	pkg     string // "x/..." is x and everything below it
	imports []string
	why     string // the reason to give to somebody who wants more
}

// Groups of packages, from the bottom to the top.
var (
	leaves = []string{"internal/..."}
	// What is in internal/ and yet no leaf: said by name who may use it.
	doors = []string{"internal/statedir", "internal/localstate", "internal/embeddedbroker", "internal/testbroker", "internal/testseed", "internal/testlog", "internal/house"}

	contracts = []string{"serde", "statestore", "kafka"}
	logic     = join(contracts, "processor", "migration")
	offsets   = join(logic, "offsetcache")
	life      = join(offsets, "task", "rebalance")
	waysIn    = join(life, "streams", "embedded", "embedded/franz", "embedded/confluent")
	clients   = []string{"kafka/franz", "kafka/confluent"}
	programs  = join(waysIn, "metrics", "streams/streamstest", "kafka/franz", "kafka/confluent", "kafka/kafkatest", "internal/statedir", "internal/embeddedbroker")
)

var rules = []rule{
	{"internal/statedir", []string{"internal/filelock"}, "the state directory knows paths and locks, not what lies in a task's directory"},
	{"internal/localstate", []string{"internal/statedir", "statestore", "migration", "offsetcache"}, "what both ways in do with the state directory knows neither of them, nor a running task"},
	{"internal/embeddedbroker", []string{"internal/filelock", "internal/kfakefetch"}, "the embedded broker is a program of its own; the library must not grow into it"},
	{"internal/testbroker", []string{"kafka", "kafka/kafkatest"}, "it only hands brokers to tests"},
	{"internal/...", nil, "packages in internal/ are leaves: everybody can use them because they use nobody"},

	{"serde", nil, "a serde turns values into bytes; it does not know where the bytes go"},
	{"statestore/storetest", []string{"statestore", "internal/testseed"}, "the conformance suite sees a store only through package statestore"},
	{"statestore/...", nil, "a store knows bytes and offsets; clients, serdes and topologies stand above or beside it"},
	{"kafka", nil, "it is the contract that the core and the clients share; a client in it would bind everybody to that client"},
	{"kafka/franz", []string{"kafka"}, "a client implements package kafka and knows nothing of what is built on it"},
	{"kafka/confluent", []string{"kafka"}, "a client implements package kafka and knows nothing of what is built on it"},
	{"kafka/kafkatest", []string{"kafka", "internal/testseed", "internal/kfakefetch"}, "the conformance suite sees a client only through package kafka"},

	{"processor", contracts, "what to compute does not depend on when tasks run and commit"},
	{"migration", contracts, "legacy files become offsets inside stores, before any task lives"},
	{"offsetcache", logic, "how far a task is, is read by tasks and by placement, so it stands below both"},
	{"task", join(offsets, "internal/statedir"), "a task's life does not depend on who placed it (rebalance), which client runs it or how the app was built"},
	{"rebalance", join(offsets, "internal/statedir"), "placement decides by offsets and members; it never touches a running task (task)"},

	{"streams", join(life, "kafka/franz", "internal/statedir", "internal/localstate"), "an App is a way in of its own beside embedded; of the clients it knows only its default"},
	{"streams/streamstest", join(logic, "task", "streams"), "a test driver runs what an App runs, with no broker and nothing of a client"},
	{"embedded", join(life, "internal/statedir", "internal/localstate"), "the embedded form must not bind its user to a client: the doors embedded/franz and embedded/confluent do"},
	{"embedded/franz", join(life, "embedded", "kafka/franz", "internal/statedir"), "a door joins one client with the embedded form"},
	{"embedded/confluent", join(life, "embedded", "kafka/confluent", "internal/statedir"), "a door joins one client with the embedded form"},

	{"metrics", join(life, "streams", "embedded", "embedded/franz"), "a collector reads what ways in tell; nothing below knows that there are metrics"},

	{"cmd/...", programs, programReason},
	{"examples/...", programs, programReason},
	{"benchmarks/...", programs, programReason},
	{"tests/...", join(programs, "internal/testbroker", "internal/testseed", "internal/testlog"), programReason},
}

const programReason = "programs and whole-system tests stand on top: they use the library, and only their own directory beside it"

// What every _test.go file may import on top of its package's rule.
var testDoors = join(clients, "kafka/kafkatest", "internal/testbroker", "internal/testseed", "internal/testlog", "internal/embeddedbroker", "internal/statedir")

// library says where another module's packages, by prefix, may be imported.
type library struct {
	prefix string
	in     []string
	tests  bool // in every _test.go file too
	cgo    bool // only in files that are left out of builds without cgo
	why    string
}

var programDirs = []string{"cmd/...", "examples/...", "benchmarks/...", "tests/..."}

// The first library that matches an import counts.
var libraries = []library{
	{
		prefix: "github.com/twmb/franz-go/pkg/kfake", in: []string{"internal/embeddedbroker", "internal/kfakefetch", "internal/testbroker", "kafka/kafkatest"}, tests: true,
		why: "the embedded broker is for tests and demonstrations; a user's program must not carry it",
	},
	{
		prefix: "github.com/twmb/franz-go", in: join(programDirs, "kafka/franz", "embedded/franz", "kafka/kafkatest", "internal/testbroker", "internal/embeddedbroker", "internal/kfakefetch"), tests: true,
		why: "the core sees a Kafka client only through package kafka, so that there can be two",
	},
	{
		prefix: "github.com/confluentinc/confluent-kafka-go", in: join(programDirs, "kafka/confluent", "embedded/confluent"), tests: true, cgo: true,
		why: "the core sees a Kafka client only through package kafka, and everything else must build without a C compiler (//go:build cgo)",
	},
	{
		prefix: "github.com/cockroachdb/pebble", in: []string{"statestore/...", "benchmarks/...", "tests/torture"}, tests: true,
		why: "the engine is behind statestore, which alone keeps a failing engine from ending the process",
	},
	{
		prefix: "github.com/syndtr/goleveldb", in: []string{"migration"},
		why: "LevelDB is only there to read what goka left",
	},
	{
		prefix: "github.com/golang/protobuf", in: nil, tests: true,
		why: "the old protobuf module is only there to test that its messages work; code uses google.golang.org/protobuf",
	},
	{
		prefix: "github.com/prometheus", in: join(programDirs, "metrics"), tests: true,
		why: "who wants other metrics, or none, must not carry Prometheus",
	},
	{
		prefix: "testing", in: join(testLibraryDirs, "internal/testseed"), tests: true,
		why: "package testing adds its flags to every program that contains it",
	},
	{prefix: "pgregory.net/rapid", in: testLibraryDirs, tests: true, why: testLibraryReason},
	{prefix: "go.uber.org/goleak", in: testLibraryDirs, tests: true, why: testLibraryReason},
	{prefix: "github.com/google/go-cmp", in: testLibraryDirs, tests: true, why: testLibraryReason},
}

var testLibraryDirs = []string{"kafka/kafkatest", "internal/testbroker", "statestore/internal/engine/enginetest", "tests/...", "statestore/storetest"}

const testLibraryReason = "it is a library for tests"

func join(group []string, more ...string) []string { return append(slices.Clip(group), more...) }

func ruleOf(dir string) (rule, bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return matches(r.pkg, dir) })
	if i < 0 {
		return rule{}, false
	}
	return rules[i], true
}

// mayImport reports whether the file may import the package to of this module.
func (r rule) mayImport(s source, to string) bool {
	switch {
	case matchesAny(r.imports, to):
		return true
	case matches(s.dir+"/internal/...", to) || strings.Contains(s.dir, "/internal/") && sharesInternal(s.dir, to):
		return true
	case matchesAny(programDirs, to):
		return isProgram(s.dir) && top(s.dir) == top(to) // examples do not use benchmarks
	case s.test && (to == s.dir || matchesAny(testDoors, to)):
		return true
	case matchesAny(doors, to):
		return false
	}
	return matchesAny(leaves, to)
}

// sharesInternal: packages in one internal directory may use one another.
func sharesInternal(a, b string) bool {
	root := a[:strings.Index(a, "/internal/")+len("/internal/")]
	return strings.HasPrefix(b, root)
}

func isProgram(dir string) bool { return matchesAny(programDirs, dir) }

func top(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	return first
}

func checkImports(files []source) (findings []string) {
	for _, s := range files {
		r, ok := ruleOf(s.dir)
		if !ok {
			findings = append(findings, fmt.Sprintf("%s: package %s has no rule in internal/house/imports_test.go: add what it may import, and the reason", s.name, s.dir))
			continue
		}
		for path, spec := range s.imports() {
			if to, ok := strings.CutPrefix(path, module+"/"); ok {
				if !r.mayImport(s, to) {
					findings = append(findings, fmt.Sprintf("%s: %s must not import %s: %s", s.at(spec), s.dir, to, r.why))
				}
				continue
			}
			if finding := checkLibrary(s, path); finding != "" {
				findings = append(findings, s.at(spec)+": "+finding)
			}
		}
	}
	slices.Sort(findings)
	return slices.Compact(findings) // a package without a rule once, not once a file
}

func checkLibrary(s source, path string) string {
	i := slices.IndexFunc(libraries, func(l library) bool { return path == l.prefix || strings.HasPrefix(path, l.prefix+"/") })
	if i < 0 {
		return ""
	}
	l := libraries[i]
	switch {
	case !matchesAny(l.in, s.dir) && !(l.tests && s.test):
		return fmt.Sprintf("%s must not import %s: %s", s.dir, path, l.why)
	case l.cgo && !s.needsCgo():
		return fmt.Sprintf("a file that imports %s needs the line //go:build cgo: %s", path, l.why)
	}
	return ""
}

func TestImports(t *testing.T) {
	report(t, checkImports(load(t)))
}

func TestImportRulesFindWhatTheyForbid(t *testing.T) {
	const pebble, kgo, confluent = "github.com/cockroachdb/pebble/v2", "github.com/twmb/franz-go/pkg/kgo", "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	tests := []struct {
		file, imports string
		words         []string // of the finding; none: it is allowed
	}{
		{"streams/app.go", module + "/task", nil},
		{"streams/app.go", module + "/kafka/franz", nil},
		{"streams/app.go", module + "/kafka/confluent", []string{"streams must not import kafka/confluent", "only its default"}},
		{"streams/app.go", module + "/embedded", []string{"a way in of its own"}},
		{"streams/app.go", module + "/internal/embeddedbroker", []string{"must not import internal/embeddedbroker"}},
		{"streams/app_test.go", module + "/internal/embeddedbroker", nil},
		{"streams/app_test.go", module + "/streams", nil},
		{"task/task.go", module + "/rebalance", []string{"does not depend on who placed it"}},
		{"rebalance/plan.go", module + "/task", []string{"never touches a running task"}},
		{"rebalance/plan_test.go", module + "/task", []string{"never touches a running task"}},
		{"task/task.go", module + "/internal/statedir", nil},
		{"task/task.go", module + "/kafka/franz", []string{"task must not import kafka/franz"}},
		{"task/task.go", module + "/examples/wordcount", []string{"task must not import examples/wordcount"}},
		{"statestore/store.go", module + "/internal/failpoint", nil},
		{"statestore/store.go", module + "/statestore/internal/table", nil},
		{"statestore/internal/table/table.go", module + "/statestore/internal/codec", nil},
		{"statestore/internal/table/table.go", module + "/serde", []string{"stand above or beside it"}},
		{"statestore/store.go", module + "/kafka", []string{"statestore must not import kafka", "bytes and offsets"}},
		{"statestore/store.go", module + "/internal/statedir", []string{"must not import internal/statedir"}},
		{"statestore/store.go", pebble, nil},
		{"task/task.go", pebble, []string{"the engine is behind statestore"}},
		{"migration/goka.go", "github.com/syndtr/goleveldb/leveldb", nil},
		{"statestore/store.go", "github.com/syndtr/goleveldb/leveldb", []string{"what goka left"}},
		{"kafka/client.go", module + "/kafka/franz", []string{"kafka must not import kafka/franz"}},
		{"kafka/client.go", kgo, []string{"only through package kafka"}},
		{"kafka/client_test.go", kgo, nil},
		{"kafka/franz/client.go", kgo, nil},
		{"kafka/confluent/client.go", confluent, []string{"//go:build cgo"}},
		{"task/task_test.go", confluent, []string{"//go:build cgo"}},
		{"task/task.go", confluent, []string{"task must not import"}},
		{"kafka/franz/client.go", "github.com/twmb/franz-go/pkg/kfake", []string{"must not carry it"}},
		{"examples/wordcount/main.go", module + "/internal/embeddedbroker", nil},
		{"examples/wordcount/main.go", module + "/benchmarks/count", []string{"only their own directory"}},
		{"benchmarks/bare/main.go", module + "/benchmarks/internal/report", nil},
		{"newpackage/x.go", "fmt", []string{"newpackage has no rule"}},
		{"internal/filelock/x.go", module + "/kafka", []string{"are leaves"}},
		{"task/task.go", "github.com/prometheus/client_golang/prometheus", []string{"must not carry Prometheus"}},
		{"metrics/app.go", "github.com/prometheus/client_golang/prometheus", nil},
		{"processor/p.go", "testing", []string{"adds its flags"}},
		{"processor/p.go", "testing/iotest", []string{"adds its flags"}},
		{"processor/p_test.go", "testing", nil},
		{"serde/p.go", "github.com/golang/protobuf/proto", []string{"google.golang.org/protobuf"}},
	}
	for _, test := range tests {
		t.Run(test.file+" "+test.imports, func(t *testing.T) {
			findings := checkImports([]source{parse(t, test.file, fmt.Sprintf("package p\nimport _ %q\n", test.imports))})
			if len(test.words) == 0 {
				report(t, findings)
			} else {
				breaks(t, findings, test.words...)
			}
		})
	}
	for tags, ok := range map[string]bool{"cgo": true, "cgo && linux": true, "!cgo": false, "cgo || linux": false, "linux": false} {
		text := fmt.Sprintf("//go:build %s\n\npackage p\nimport _ %q\n", tags, confluent)
		if findings := checkImports([]source{parse(t, "kafka/confluent/client.go", text)}); (len(findings) == 0) != ok {
			t.Errorf("confluent with tags %q: %q", tags, findings)
		}
	}
}

// Every package that is there is meant by the rule that it gets.
func TestRulesHavePackages(t *testing.T) {
	for i, r := range rules {
		dir := strings.TrimSuffix(r.pkg, "/...")
		if got, _ := ruleOf(dir); got.pkg != r.pkg {
			t.Errorf("rule %d for %s is never used: rule %s comes first", i, r.pkg, got.pkg)
		}
		if r.why == "" {
			t.Errorf("rule for %s gives no reason", r.pkg)
		}
	}
}
