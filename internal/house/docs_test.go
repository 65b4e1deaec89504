package house

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// What a library package's documentation says, whatever else it says.
var docWords = []string{"Owns", "Never", "Called by", "goroutine", "Invariant"}

// Where a package is generated code, what it does is said by its source.
func isGenerated(files []source, dir string) bool {
	return slices.ContainsFunc(files, func(s source) bool { return s.dir == dir && s.generated })
}

// checkPackageDocs: one package comment a package; a library's is in doc.go and has the
// sections that a reader of this code base looks for.
func checkPackageDocs(files []source) (findings []string) {
	comments := map[string][]source{}
	program := map[string]bool{}
	for _, s := range files {
		program[s.dir] = program[s.dir] || s.ast.Name.Name == "main"
		comments[s.dir] = append(comments[s.dir], nil...) // every package is looked at
		if s.ast.Doc != nil {
			comments[s.dir] = append(comments[s.dir], s)
		}
	}
	for dir, with := range comments {
		switch {
		case len(with) == 0:
			findings = append(findings, fmt.Sprintf("%s: no package comment: write doc.go (a program: above package main)", dir))
		case len(with) > 1:
			findings = append(findings, fmt.Sprintf("%s: %d package comments, in %s and %s: go doc joins them into one text that nobody wrote", dir, len(with), with[0].name, with[1].name))
		case !program[dir] && !isGenerated(files, dir):
			findings = append(findings, checkDocFile(with[0])...)
		}
	}
	return findings
}

func checkDocFile(s source) (findings []string) {
	if path.Base(s.name) != "doc.go" {
		findings = append(findings, fmt.Sprintf("%s: the package comment belongs into doc.go, where a reader looks for it", s.name))
	}
	text := s.ast.Doc.Text()
	for _, word := range docWords {
		if !strings.Contains(text, word) {
			findings = append(findings, fmt.Sprintf("%s: the package comment does not say %q: it names what the package owns, what it never does, who calls it on which goroutine, and its invariants", s.name, word))
		}
	}
	return findings
}

// checkExported: every exported name has a comment. In a group of constants, variables
// or fields a comment above the group or on the line counts.
func checkExported(files []source) (findings []string) {
	for _, s := range files {
		if s.test || s.generated || s.ast.Name.Name == "main" {
			continue
		}
		for _, decl := range s.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && receiverIsExported(d) && d.Doc == nil && !isWellKnown(d) {
					findings = append(findings, undocumented(s, d, d.Name.Name))
				}
			case *ast.GenDecl:
				findings = append(findings, checkGroup(s, d)...)
			}
		}
	}
	return findings
}

func undocumented(s source, n ast.Node, name string) string {
	return fmt.Sprintf("%s: %s is exported and has no comment: say what it means, its units and errors, and who owns its slices", s.at(n), name)
}

func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// isWellKnown: methods whose meaning their interface in the standard library gives.
func isWellKnown(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"String", "Error", "Unwrap", "Len", "Less", "Swap"}, d.Name.Name)
}

func checkGroup(s source, d *ast.GenDecl) (findings []string) {
	for _, spec := range d.Specs {
		switch x := spec.(type) {
		case *ast.TypeSpec:
			if !x.Name.IsExported() {
				continue
			}
			if d.Doc == nil && x.Doc == nil {
				findings = append(findings, undocumented(s, x, x.Name.Name))
			}
			if i, ok := x.Type.(*ast.InterfaceType); ok {
				findings = append(findings, checkMethods(s, x.Name.Name, i)...)
			}
		case *ast.ValueSpec:
			if d.Doc == nil && x.Doc == nil && x.Comment == nil {
				for _, name := range x.Names {
					if name.IsExported() {
						findings = append(findings, undocumented(s, x, name.Name))
					}
				}
			}
		}
	}
	return findings
}

// checkMethods: the comment of an interface with one method is that method's too, and a
// comment above lines that follow one another is that of each of them.
func checkMethods(s source, of string, i *ast.InterfaceType) (findings []string) {
	if len(i.Methods.List) == 1 {
		return nil
	}
	documented := -1 // the line after the last documented method
	for _, m := range i.Methods.List {
		has := m.Doc != nil || m.Comment != nil || s.fset.Position(m.Pos()).Line == documented
		for _, name := range m.Names { // an embedded interface has none
			if name.IsExported() && !has {
				findings = append(findings, undocumented(s, m, of+"."+name.Name))
			}
		}
		if has {
			documented = s.fset.Position(m.End()).Line + 1
		}
	}
	return findings
}

func TestPackageDocs(t *testing.T) { report(t, checkPackageDocs(load(t))) }

func TestExportedNamesAreDocumented(t *testing.T) { report(t, checkExported(load(t))) }

const goodDoc = "// Package p is here.\n// Owns, Never, Called by, goroutine, Invariants.\npackage p\n"

func TestPackageDocRulesFindWhatTheyForbid(t *testing.T) {
	doc, code := parse(t, "p/doc.go", goodDoc), parse(t, "p/p.go", "package p\n")
	report(t, checkPackageDocs([]source{doc, code}))
	report(t, checkPackageDocs([]source{parse(t, "p/main.go", "// Command p.\npackage main\n")}))

	breaks(t, checkPackageDocs([]source{code}), "p: no package comment")
	breaks(t, checkPackageDocs([]source{doc, parse(t, "p/p.go", goodDoc)}), "2 package comments", "p/doc.go", "p/p.go")
	breaks(t, checkPackageDocs([]source{parse(t, "p/p.go", goodDoc)}), "belongs into doc.go")
	breaks(t, checkPackageDocs([]source{parse(t, "p/doc.go", strings.Replace(goodDoc, "Never", "", 1))}), `"Never"`)
}

func TestExportedRuleFindsWhatItForbids(t *testing.T) {
	for _, text := range []string{
		"func F() {}", "type T int", "const C = 1", "var V int", "var (\n\tu int\n\tV int\n)", "var v, V int",
		"type t int\n// T is.\ntype T int\nfunc (t) M() {}\nfunc (*T) M() {}", "// T is.\ntype T[K any] int\nfunc (T[K]) M() {}",
		"// I is.\ntype I interface{\n\tM()\n\t// N does.\n\tN()\n}", "// I is.\ntype I interface{\n\t// M does.\n\tM()\n\n\tN()\n}",
	} {
		breaks(t, checkExported([]source{parse(t, "p/p.go", "package p\n"+text)}), "is exported and has no comment")
	}
	for _, text := range []string{
		"// F does.\nfunc F() {}", "// These are.\nconst (\n\tA = 1\n\tB = 2\n)", "var (\n\tV int // is\n)", "func f() {}",
		"type t int\nfunc (t) M() {}", "// T is.\ntype T int\nfunc (T) String() string { return \"\" }", "// I is.\ntype I interface{\n\t// M does.\n\tM()\n\tN() // does\n\tfoo()\n}",
	} {
		report(t, checkExported([]source{parse(t, "p/p.go", "package p\n"+text)}))
	}
	report(t, checkExported([]source{parse(t, "p/p_test.go", "package p\nfunc F() {}")}))
}
