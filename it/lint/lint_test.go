// Package lint holds the rules about the code of this repository that no tool knows, as tests: which package may import which, what
// has to be documented, and that each invariant is held by a test.
package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tidemark-cdc/tidemark"

// pkg is a package of the module as go list sees it.
type pkg struct {
	Dir          string
	ImportPath   string
	Name         string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=Dir,ImportPath,Name,GoFiles,TestGoFiles,XTestGoFiles,Imports", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// top is the first folder of a package's path in the module.
func top(path string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
	first, _, _ := strings.Cut(rest, "/")
	return first
}

// TestImportsGoOneWay holds the one line schema, offset ← binlog ← emitter ← cmd. it imports nothing of it.
func TestImportsGoOneWay(t *testing.T) {
	allowed := map[string][]string{
		"schema":  {"schema"},
		"offset":  {"offset"},
		"binlog":  {"schema", "offset", "binlog"},
		"emitter": {"schema", "offset", "binlog", "emitter"},
		"cmd":     {"schema", "offset", "binlog", "emitter", "cmd"},
		"it":      {"it"},
	}
	for _, p := range packages(t) {
		may, ok := allowed[top(p.ImportPath)]
		if !ok {
			t.Errorf("%s: a top-level folder that the layout does not have", p.ImportPath)
			continue
		}
		for _, i := range p.Imports {
			if strings.HasPrefix(i, module) && !slices.Contains(may, top(i)) {
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
		}
	}
}

// TestThirdPartiesStayInTheirPackages holds that each library is behind one package, so that it can be replaced there.
func TestThirdPartiesStayInTheirPackages(t *testing.T) {
	allowed := map[string][]string{
		"github.com/go-mysql-org/go-mysql": {"binlog", "it"},
		"github.com/twmb/franz-go":         {"emitter", "it"},
		"github.com/pingcap/":              {"schema"},
		"github.com/linkedin/goavro":       {"schema", "emitter", "it"},
		"software.sslmate.com/":            {"emitter"},
		"github.com/testcontainers/":       {"it"},
		"github.com/moby/":                 {"it"},
		"github.com/spf13/":                {"cmd"},
		"github.com/magiconair/":           {"cmd"},
		"go.uber.org/zap":                  {"binlog", "emitter", "cmd"},
		"golang.org/x/text":                {"schema"},
		"golang.org/x/term":                {"cmd"},
	}
	for _, p := range packages(t) {
		for _, i := range p.Imports {
			for library, in := range allowed {
				if !strings.HasPrefix(i, library) || slices.Contains(in, top(p.ImportPath)) {
					continue
				}
				// The demo brings its own broker, and reads its topics as a consumer does.
				if p.ImportPath == module+"/cmd/internal/demo" && strings.HasPrefix(i, "github.com/twmb/franz-go/pkg/") {
					continue
				}
				t.Errorf("%s imports %s, which belongs into %s", p.ImportPath, i, strings.Join(in, ", "))
			}
		}
	}
}

// file is a parsed source file.
type file struct {
	pkg  pkg
	name string
	ast  *ast.File
	set  *token.FileSet
}

func (f file) at(n ast.Node) string {
	p := f.set.Position(n.Pos())
	return fmt.Sprintf("%s/%s:%d", strings.TrimPrefix(f.pkg.ImportPath, module+"/"), f.name, p.Line)
}

func files(t *testing.T) []file {
	t.Helper()
	var all []file
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, file{p, name, parsed, set})
		}
	}
	return all
}

// wellKnown are methods that say all with their name, since an interface of the standard library defines them.
var wellKnown = []string{"String", "Error", "Unwrap", "Is"}

// TestExportedNamesAreDocumented holds that every exported name, and every package, has a comment.
func TestExportedNamesAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range files(t) {
		documented[f.pkg.ImportPath] = documented[f.pkg.ImportPath] || f.ast.Doc.Text() != ""
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && receiverExported(d) && d.Doc.Text() == "" && !slices.Contains(wellKnown, d.Name.Name) {
					t.Errorf("%s: %s has no doc comment", f.at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					checkSpec(t, f, d, s)
				}
			}
		}
	}
	for path, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", path)
		}
	}
}

func checkSpec(t *testing.T, f file, d *ast.GenDecl, s ast.Spec) {
	t.Helper()
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc.Text() == "" && d.Doc.Text() == "" {
			t.Errorf("%s: %s has no doc comment", f.at(s), s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() && s.Doc.Text() == "" && s.Comment.Text() == "" && d.Doc.Text() == "" {
				t.Errorf("%s: %s has no doc comment", f.at(s), n.Name)
			}
		}
	}
}

// receiverExported says whether a function is one, or a method of an exported type.
func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	expr := d.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return false
		}
	}
}

// TestNoForeignTypesInSignatures holds that what a package exports does not name a type of go-mysql or franz-go, so that neither
// leaks into its callers.
func TestNoForeignTypesInSignatures(t *testing.T) {
	foreign := regexp.MustCompile(`^github\.com/(go-mysql-org|twmb|linkedin)/`)
	for _, f := range files(t) {
		if top(f.pkg.ImportPath) == "it" || strings.Contains(f.pkg.ImportPath, "/internal/") {
			continue
		}
		names := map[string]string{}
		for _, i := range f.ast.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			if !foreign.MatchString(path) {
				continue
			}
			name := regexp.MustCompile(`/v\d+$`).ReplaceAllString(path, "")
			name = name[strings.LastIndexByte(name, '/')+1:]
			if i.Name != nil {
				name = i.Name.Name
			}
			names[name] = path
		}
		if len(names) == 0 {
			continue
		}
		look := func(what string, n ast.Node) {
			ast.Inspect(n, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.StructType: // only what callers can see
					for _, field := range n.Fields.List {
						if slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
							if s, ok := field.Type.(*ast.SelectorExpr); ok {
								report(t, f, what, names, s)
							}
						}
					}
					return false
				case *ast.SelectorExpr:
					report(t, f, what, names, n)
				}
				return true
			})
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && receiverExported(d) {
					look(d.Name.Name, d.Type)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() {
						look(s.Name.Name, s.Type)
					}
				}
			}
		}
	}
}

func report(t *testing.T, f file, what string, names map[string]string, s *ast.SelectorExpr) {
	t.Helper()
	if x, ok := s.X.(*ast.Ident); ok && names[x.Name] != "" {
		t.Errorf("%s: %s names %s.%s of %s", f.at(s), what, x.Name, s.Sel.Name, names[x.Name])
	}
}

// invariants is how many of the invariants in ARCHITECTURE.md hold by now.
const invariants = 10

// TestEveryInvariantHasATest holds that each invariant Ix has a test whose name carries Ix_.
func TestEveryInvariantHasATest(t *testing.T) {
	held := map[string]bool{}
	name := regexp.MustCompile(`func (Test\w*)\(`)
	number := regexp.MustCompile(`I\d+_`)
	for _, p := range packages(t) {
		for _, f := range append(slices.Clone(p.TestGoFiles), p.XTestGoFiles...) {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range name.FindAllSubmatch(text, -1) {
				for _, i := range number.FindAllString(string(m[1]), -1) {
					held[i] = true
				}
			}
		}
	}
	for i := 1; i <= invariants; i++ {
		if !held[fmt.Sprintf("I%d_", i)] {
			t.Errorf("no test is named after I%d", i)
		}
	}
}

// TestNothingIsSkipped holds that no test skips: what a machine lacks is a failure that says so.
func TestNothingIsSkipped(t *testing.T) {
	skip := regexp.MustCompile(`\b[tbf]\.Skip(f|Now)?\(`)
	for _, p := range packages(t) {
		for _, f := range append(slices.Clone(p.TestGoFiles), p.XTestGoFiles...) {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			if m := skip.Find(text); m != nil {
				t.Errorf("%s/%s: %s", p.ImportPath, f, m)
			}
		}
	}
}
