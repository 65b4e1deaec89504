package house

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// nameInText is a name of a package as prose and examples write it: pkg.Name, pkg.Type.Member, Type.Field.
var nameInText = regexp.MustCompile(`\b([a-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?|\b(Config|Limits|Materialized|StoreConfig)\.([A-Z]\w*)`)

// names are what packages export, "pkg.Name" and "pkg.Type.Member"; of types alone "Type.Member".
type names map[string]bool

func namesOf(files []source) (n names, packages map[string]bool) {
	n, packages = names{}, map[string]bool{}
	for _, s := range files {
		pkg := s.ast.Name.Name
		if s.test || !isPublic(s.dir) {
			continue
		}
		packages[pkg] = true
		for _, decl := range s.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				n.add(pkg, receiver(d), d.Name.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					n.addSpec(pkg, spec)
				}
			}
		}
	}
	return n, packages
}

func (n names) add(pkg, of, name string) {
	if of == "" {
		n[pkg+"."+name] = true
		return
	}
	n[pkg+"."+of+"."+name], n[of+"."+name] = true, true
}

func (n names) addSpec(pkg string, spec ast.Spec) {
	switch x := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range x.Names {
			n.add(pkg, "", name.Name)
		}
	case *ast.TypeSpec:
		n.add(pkg, "", x.Name.Name)
		var members *ast.FieldList
		switch t := x.Type.(type) {
		case *ast.StructType:
			members = t.Fields
		case *ast.InterfaceType:
			members = t.Methods
		default:
			return
		}
		for _, f := range members.List {
			for _, name := range f.Names {
				n.add(pkg, x.Name.Name, name.Name)
			}
		}
	}
}

// receiver gives the name of the type that a method belongs to, "" for a function.
func receiver(d *ast.FuncDecl) (name string) {
	if d.Recv == nil {
		return ""
	}
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// checkNamesInText: what the documentation calls by a name of ours has that name.
func checkNamesInText(files []source, texts map[string]string) (findings []string) {
	have, packages := namesOf(files)
	for name, text := range texts {
		for i, line := range strings.Split(text, "\n") {
			for _, m := range nameInText.FindAllStringSubmatch(line, -1) {
				pkg, first, second, of, field := m[1], m[2], m[3], m[4], m[5]
				ok := true
				switch {
				case of != "":
					ok = have[of+"."+field]
				case packages[pkg] && second != "" && have[pkg+"."+first]:
					ok = have[pkg+"."+first+"."+second] || have[first+"."+second] // of an alias
				case packages[pkg]:
					ok = have[pkg+"."+first]
				}
				if !ok {
					findings = append(findings, fmt.Sprintf("%s:%d: there is no %s", name, i+1, m[0]))
				}
			}
		}
	}
	slices.Sort(findings)
	return findings
}

// foreignNames are of a client library whose package has the name of one of ours.
var foreignNames = regexp.MustCompile(`kafka\.(NewConsumer|ConfigMap|Message|Consumer|TopicPartition|TransactionalID)\b`)

func TestNamesInDocs(t *testing.T) {
	files, texts := load(t), map[string]string{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && isOutside(name, entry.Name()):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, ".md"):
			text, err := os.ReadFile(name)
			texts[name] = foreignNames.ReplaceAllString(string(text), "")
			return err
		}
		return nil
	})
	if err != nil || len(texts) < 5 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	report(t, checkNamesInText(files, texts))
}

func TestNamesInTextRuleFindsWhatItForbids(t *testing.T) {
	files := []source{parse(t, "p/p.go", "package p\ntype Config struct{ A, B int }\nfunc (Config) M() {}\ntype I interface{ N() }\nvar V int\n"), parse(t, "q/q.go", "package q\nimport \"p\"\ntype Config = p.Config\n")}
	check := func(text string) []string { return checkNamesInText(files, map[string]string{"x.md": text}) }
	for _, text := range []string{"p.Config", "`p.Config.A` and p.V", "p.Config.M", "p.I.N", "q.Config.B", "Config.A", "other.Thing", "e.g. Nothing", "P.Config"} {
		report(t, check(text))
	}
	for _, text := range []string{"p.Nothing", "p.Config.C", "`Config.C`", "\np.V.W"} {
		breaks(t, check(text), "x.md:", "there is no")
	}
}
