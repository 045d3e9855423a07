package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every row that a comment of the code cites is in testdata/features.txt, and each row is
// there once.
func TestFeatures(t *testing.T) {
	rows := map[string]bool{}
	for _, f := range features(t) {
		if rows[f.row] {
			t.Errorf("features.txt has the row %s twice", f.row)
		}
		rows[f.row] = true
	}
	cited := 0
	for place, text := range comments(t) {
		for _, row := range citation.FindAllString(text, -1) {
			if cited++; !rows[row] {
				t.Errorf("%s cites %s, which features.txt does not have", place, row)
			}
		}
	}
	if cited < 100 {
		t.Errorf("found %d citations", cited)
	}
}

// Each row names a test that is there.
func TestFeaturesAreShown(t *testing.T) {
	for _, f := range features(t) {
		if len(f.tests) == 0 {
			t.Errorf("features.txt names no test that shows %s", f.row)
		}
		for _, m := range f.tests {
			test, script, dir := m[1], m[2], m[3]
			files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			there := slices.ContainsFunc(files, func(f string) bool {
				rel, err := filepath.Rel(root, f)
				return err == nil && strings.Contains(read(t, rel), "func "+test+"(")
			})
			scripts, err := filepath.Glob(filepath.Join(root, dir, "testdata", script+".txt*"))
			if !there || err != nil || script != "" && len(scripts) == 0 {
				t.Errorf("%s: there is no %s/%s in %s", f.row, test, script, dir)
			}
		}
	}
}

// feature is a row of testdata/features.txt.
type feature struct {
	row   string
	tests [][]string // test, script, directory, after the whole line
}

func features(t *testing.T) (out []feature) {
	t.Helper()
	shows := regexp.MustCompile(`^\t(Test\w+)(?:/([\w-]+))? ([\w/]+)$`)
	head := regexp.MustCompile(`^([A-Z]\d+b?) \S`)
	for line := range strings.Lines(read(t, "docs/testdata/features.txt")) {
		line = strings.TrimSuffix(line, "\n")
		m, test := head.FindStringSubmatch(line), shows.FindStringSubmatch(line)
		switch {
		case m != nil:
			out = append(out, feature{row: m[1]})
		case test != nil && len(out) > 0:
			out[len(out)-1].tests = append(out[len(out)-1].tests, test)
		case line != "" && !strings.HasPrefix(line, "#"):
			t.Errorf("features.txt: %q is neither a row nor a test", line)
		}
	}
	return out
}

var citation = regexp.MustCompile(`\b[A-F][1-9]\d?b?\b`)

// comments returns the comments of all Go files, by place.
func comments(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".tools", "bin", "dist", "testdata", "node_modules"}, d.Name()) {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, c := range f.Comments {
			out[strings.TrimPrefix(set.Position(c.Pos()).String(), "../")] = c.Text()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
