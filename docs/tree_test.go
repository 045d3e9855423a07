package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostFiles is how many files without tests a directory of the product has at most.
const mostFiles = 20

// The tree of docs/architecture.md has every directory of the product with Go code, and
// no other. Each has at most mostFiles.
func TestTree(t *testing.T) {
	files := map[string]int{}
	section := architecture(t, "The tree")
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(section, -1) {
		for _, dir := range span.FindAllStringSubmatch(m[1], -1) {
			listed = append(listed, dir[1])
			if _, err := os.Stat(filepath.Join(root, dir[1])); err != nil {
				t.Errorf("docs/architecture.md: there is no directory %s", dir[1])
			}
		}
	}
	for _, top := range []string{"client", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "testdata" || d.Name() == "testkit" || strings.HasSuffix(d.Name(), "test")) {
				return fs.SkipDir
			}
			dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../")
			if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return nil
			}
			if files[dir]++; !slices.Contains(listed, dir) {
				listed = append(listed, dir)
				t.Errorf("the tree of docs/architecture.md does not have %s", dir)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for dir, n := range files {
		if n > mostFiles {
			t.Errorf("%s has %d files, at most %d", dir, n, mostFiles)
		}
	}
}

// A line of a test has at most 200 bytes.
func TestLinesOfTests(t *testing.T) {
	must(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		code, err := os.ReadFile(file)
		for i, line := range strings.Split(string(code), "\n") {
			if len(line) > 200 {
				t.Errorf("%s:%d has %d bytes", file, i+1, len(line))
			}
		}
		return err
	}))
}

// The way of a turn has at most fifteen steps. Each begins with a file, and names functions
// that it declares. Each is named once.
func TestOneTurn(t *testing.T) {
	steps := regexp.MustCompile(`(?m)^(\d+)\. `).Split(architecture(t, "One turn, step by step"), -1)[1:]
	if len(steps) < 8 || len(steps) > 15 {
		t.Errorf("%d steps, want at most 15", len(steps))
	}
	var seen []string
	for i, step := range steps {
		step, _, _ = strings.Cut(step, "\n\n")
		names := span.FindAllStringSubmatch(step, -1)
		if len(names) < 2 {
			t.Errorf("step %d names no function", i+1)
			continue
		}
		declared, err := declarations(filepath.Join(root, names[0][1]))
		if err != nil {
			t.Errorf("step %d: %v", i+1, err)
		}
		for k, m := range names {
			if k > 0 && !slices.Contains(declared, m[1]) {
				t.Errorf("step %d: %s does not declare %s", i+1, names[0][1], m[1])
			}
			if slices.Contains(seen, m[1]) {
				t.Errorf("step %d names %s again", i+1, m[1])
			}
			seen = append(seen, m[1])
		}
	}
}

// architecture returns a section of docs/architecture.md.
func architecture(t *testing.T, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(read(t, "docs/architecture.md"), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/architecture.md has no section %q", heading)
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}

// declarations lists the functions, types and variables of a file, methods as Type.Method.
func declarations(file string) (names []string, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names, nil
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
