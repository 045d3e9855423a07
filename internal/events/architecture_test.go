package events

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/architecture.md follows one turn by the names of functions: all of them are
// there, as package.function or type.method.
func TestArchitectureNames(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## One turn, step by step\n")
	section, _, found := strings.Cut(rest, "\n## ")
	names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(section, -1)
	if !found || len(names) < 40 {
		t.Fatalf("the section names %d functions", len(names))
	}
	known := functions(t, "..")
	for _, m := range names {
		if !known[m[1]] {
			t.Errorf("docs/architecture.md names %s, which is no function", m[1])
		}
	}
}

// functions lists those of all packages below a directory, tests aside.
func functions(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				out[ownerOf(file, f)+"."+f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ownerOf is the package of a function, or the type of a method.
func ownerOf(file *ast.File, f *ast.FuncDecl) string {
	if f.Recv == nil {
		return file.Name.Name
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
