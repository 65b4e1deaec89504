package house

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// apiFile holds the declarations that users of the module see.
const apiFile = "docs/api.txt"

var updateAPI = flag.Bool("update-api", false, "write "+apiFile+" instead of comparing with it")

const apiHead = `What the packages export, for a review as a whole: declarations without comments, which
"go doc" shows. It is written by "make api"; TestAPI fails when it is not that of the source,
so that no name comes or goes unnoticed.

`

// exported is what one package exports.
type exported struct {
	dir  string
	text string
	// names are those at package level; the methods and fields of exported types come on top.
	names, methods, fields int
}

func isPublic(dir string) bool {
	return !matchesAny(programDirs, dir) && !strings.Contains("/"+dir+"/", "/internal/")
}

// isBuilt reports whether the file is one of a build for Linux with cgo, of which the list is: files for
// other systems declare the same names again.
func isBuilt(s source) (bool, error) {
	system := build.Context{GOOS: "linux", GOARCH: "amd64", Compiler: "gc", CgoEnabled: true, ReleaseTags: build.Default.ReleaseTags}
	system.OpenFile = func(name string) (io.ReadCloser, error) {
		if text, ok := s.text.(string); ok {
			return io.NopCloser(strings.NewReader(text)), nil
		}
		return os.Open(name)
	}
	return system.MatchFile(path.Dir(s.name), path.Base(s.name))
}

// listAPI gives the text of docs/api.txt for the files.
func listAPI(files []source) (string, error) {
	packages := map[string][]source{}
	for _, s := range files {
		ok, err := isBuilt(s)
		if err != nil {
			return "", err
		}
		if ok && isPublic(s.dir) && !s.test {
			packages[s.dir] = append(packages[s.dir], s)
		}
	}
	var table, all bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "names\tmethods\tfields\t  package\n")
	var sum exported
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		e, err := exportsOf(dir, packages[dir])
		if err != nil {
			return "", err
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t  %s\n", e.names, e.methods, e.fields, dir)
		all.WriteString("\n" + e.text)
		sum.names, sum.methods, sum.fields = sum.names+e.names, sum.methods+e.methods, sum.fields+e.fields
	}
	fmt.Fprintf(w, "%d\t%d\t%d\t  together\n", sum.names, sum.methods, sum.fields)
	err := w.Flush()
	return apiHead + table.String() + all.String(), err
}

// exportsOf lists a package as go doc does: constants, variables, functions, and each type with
// what makes it and its methods.
func exportsOf(dir string, files []source) (exported, error) {
	e := exported{dir: dir}
	fset := token.NewFileSet() // go/doc wants one, and changes what it reads
	var parsed []*ast.File
	for _, s := range files {
		f, err := parser.ParseFile(fset, s.name, s.text, parser.ParseComments)
		if err != nil {
			return e, err
		}
		parsed = append(parsed, f)
	}
	p, err := doc.NewFromFiles(fset, parsed, module+"/"+dir)
	if err != nil {
		return e, fmt.Errorf("list %s: %w", dir, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "== %s (package %s)\n", dir, p.Name)
	write := func(indent string, n ast.Node) {
		b.WriteString(indent + strings.ReplaceAll(declaration(fset, n), "\n", "\n"+indent) + "\n")
	}
	values := func(indent string, groups ...[]*doc.Value) {
		for _, v := range slices.Concat(groups...) {
			e.names += len(v.Names)
			write(indent, v.Decl)
		}
	}
	funcs := func(indent string, count *int, list []*doc.Func) {
		for _, f := range list {
			*count++
			write(indent, f.Decl)
		}
	}
	values("", p.Consts, p.Vars)
	funcs("", &e.names, p.Funcs)
	for _, t := range p.Types {
		e.names++
		e.countMembers(t.Decl)
		write("", t.Decl)
		values("  ", t.Consts, t.Vars)
		funcs("  ", &e.names, t.Funcs)
		funcs("  ", &e.methods, t.Methods)
	}
	e.text = b.String()
	return e, nil
}

// countMembers counts the fields of a struct and the methods of an interface.
func (e *exported) countMembers(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch x := spec.(*ast.TypeSpec).Type.(type) {
		case *ast.StructType:
			e.fields += x.Fields.NumFields()
		case *ast.InterfaceType:
			for _, m := range x.Methods.List {
				e.methods += len(m.Names)
			}
		}
	}
}

var runsOfSpaces = regexp.MustCompile(` {2,}`)

// declaration prints a declaration so that a change of its comments, or of its neighbours' widths, is
// none of the text.
func declaration(fset *token.FileSet, n ast.Node) string {
	ast.Inspect(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.GenDecl:
			x.Doc = nil
		case *ast.FuncDecl:
			x.Doc, x.Body = nil, nil
		case *ast.TypeSpec:
			x.Doc, x.Comment = nil, nil
		case *ast.ValueSpec:
			x.Doc, x.Comment = nil, nil
		case *ast.Field:
			x.Doc, x.Comment = nil, nil
		case *ast.FuncLit:
			x.Body = &ast.BlockStmt{}
		case *ast.CompositeLit:
			x.Elts = nil
		}
		return true
	})
	var b bytes.Buffer
	if err := (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&b, fset, n); err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		text := strings.TrimLeft(line, " ")
		if text = strings.TrimRight(text, "\n"); text != "" {
			lines = append(lines, line[:strings.Index(line, text)]+runsOfSpaces.ReplaceAllString(text, " "))
		}
	}
	return strings.Join(lines, "\n")
}

func TestAPI(t *testing.T) {
	got, err := listAPI(load(t))
	if err != nil {
		t.Fatal(err)
	}
	if *updateAPI {
		if err := os.WriteFile(apiFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffAPI(string(want), got); diff != "" {
		t.Errorf("the exported API is not that of %s. If that is intended, run \"make api\" and commit the file:\n%s", apiFile, diff)
	}
}

// diffAPI gives the lines that only one of two lists has, each with its package and the type that it belongs to.
func diffAPI(want, got string) string {
	var b strings.Builder
	for _, x := range []struct{ sign, of, without string }{{"-", want, got}, {"+", got, want}} {
		has := map[string]int{}
		for _, line := range apiLines(x.without) {
			has[line]++
		}
		for _, line := range apiLines(x.of) {
			if has[line]--; has[line] < 0 {
				fmt.Fprintf(&b, "%s %s\n", x.sign, line)
			}
		}
	}
	if b.Len() == 0 && want != got {
		return "the same lines in another order\n"
	}
	return b.String()
}

func apiLines(text string) (lines []string) {
	dir, of := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if after, ok := strings.CutPrefix(line, "== "); ok {
			dir, _, _ = strings.Cut(after, " ")
			of = ""
		} else if after, ok := strings.CutPrefix(line, "type "); ok {
			of = "." + strings.FieldsFunc(after, func(r rune) bool { return r == ' ' || r == '[' })[0]
		}
		lines = append(lines, dir+of+": "+line)
	}
	return lines
}

func TestAPIShowsEveryChange(t *testing.T) {
	const base = "// T is.\ntype T struct {\n\t// A is.\n\tA, B int\n\tc int\n}\n// F does.\nfunc F(x int) T { return T{} }\nfunc (t *T) M() {}\n// C is.\nconst C = 1\nvar v = 1\n"
	list := func(text string) string {
		got, err := listAPI([]source{parse(t, "p/p.go", "package p\n"+text), parse(t, "p/internal/x/x.go", "package x\nfunc X() {}"), parse(t, "p/p_test.go", "package p\nfunc TestX() {}"),
			parse(t, "p/p_windows.go", "package p\nfunc W() {}"), parse(t, "p/pure.go", "//go:build !cgo\n\npackage p\nfunc F(y int) T { return T{} }")})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	was := list(base)
	for _, line := range []string{"== p (package p)", "const C = 1", "type T struct {", "    A, B int", "  func F(x int) T", "  func (t *T) M()", "3 1 2 p"} {
		if !strings.Contains(runsOfSpaces.ReplaceAllString(was, " "), runsOfSpaces.ReplaceAllString(line, " ")) {
			t.Errorf("no line %q in\n%s", line, was)
		}
	}
	for _, x := range []struct {
		old, new string
		shows    bool
	}{
		{"F(x int)", "F(x int64)", true},
		{"B int", "B int; D string", true},
		{"C = 1", "C = 2", true},
		{"M()", "m()", true},
		{"A, B int", "A int", true},
		{"A is.", "A is another.\n\t// And more.", false},
		{"c int", "c map[string]int", false},
		{"return T{}", "return T{A: 1}", false},
		{"var v = 1", "", false},
	} {
		now := list(strings.Replace(base, x.old, x.new, 1))
		if shows := now != was; shows != x.shows || (diffAPI(was, now) != "") != shows {
			t.Errorf("%q for %q: it shows is %v, want %v", x.new, x.old, shows, x.shows)
		}
	}
}
