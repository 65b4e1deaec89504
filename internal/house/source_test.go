package house

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/tidemark-streams/tidemark"

// source is one parsed Go file. Files of all systems and build tags are read.
type source struct {
	name      string // slash-separated, from the module's root
	dir       string // the package's path in the module, "." for the root
	test      bool   // _test.go
	generated bool
	text      any // as parser.ParseFile takes it; nil: the file's
	ast       *ast.File
	fset      *token.FileSet
}

func parse(t *testing.T, name string, text any) source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return source{
		name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(file), text: text, ast: file, fset: fset,
	}
}

// at gives the place of a node as file:line.
func (s source) at(n ast.Node) string {
	p := s.fset.Position(n.Pos())
	p.Column = 0
	return p.String()
}

// needsCgo reports whether the file is left out of builds without cgo.
func (s source) needsCgo() bool {
	for _, group := range s.ast.Comments {
		if group.Pos() > s.ast.Package {
			break
		}
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			return err == nil && !expr.Eval(func(tag string) bool { return tag != "cgo" })
		}
	}
	return false
}

// imports gives the import paths and their specs, in order.
func (s source) imports() map[string]*ast.ImportSpec {
	found := map[string]*ast.ImportSpec{}
	for _, spec := range s.ast.Imports {
		found[strings.Trim(spec.Path.Value, `"`)] = spec
	}
	return found
}

// load parses every Go file of the module.
func load(t *testing.T) []source {
	t.Helper()
	root := moduleRoot(t)
	t.Chdir(root) // so that places are printed as go vet prints them
	var files []source
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && isOutside(name, entry.Name()):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, ".go"):
			files = append(files, parse(t, filepath.ToSlash(name), nil))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found only %d Go files under %s", len(files), root)
	}
	return files
}

// isOutside: what the go command leaves out, and modules of their own.
func isOutside(name, base string) bool {
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	return err == nil
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

// matches reports whether a package's path is the pattern or, for "x/...", in its tree.
func matches(pattern, dir string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == tree || strings.HasPrefix(dir, tree+"/")
	}
	return dir == pattern
}

func matchesAny(patterns []string, dir string) bool {
	for _, p := range patterns {
		if matches(p, dir) {
			return true
		}
	}
	return false
}

// report prints each finding as an error of its own.
func report(t *testing.T, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}

// breaks fails unless checking the files finds exactly one thing, with these words.
func breaks(t *testing.T, findings []string, words ...string) {
	t.Helper()
	if len(findings) != 1 {
		t.Errorf("findings %q, want one with %q", findings, words)
		return
	}
	for _, w := range words {
		if !strings.Contains(findings[0], w) {
			t.Errorf("finding %q does not say %q", findings[0], w)
		}
	}
}
