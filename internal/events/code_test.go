package events

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// Every code that is declared stands in the table, and nothing else does.
func TestCodesAreComplete(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[Code]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Code") && len(v.Values) == 1 {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				s, _ := strconv.Unquote(lit.Value)
				declared[Code(s)] = true
			}
		}
		return true
	})
	for c := range declared {
		if info, ok := Codes[c]; !ok || info.Meaning == "" || info.Hint == "" {
			t.Errorf("%s has no entry with meaning and hint", c)
		}
	}
	if len(declared) != len(Codes) {
		t.Errorf("%d codes declared, %d in the table", len(declared), len(Codes))
	}
}

func TestCodeOf(t *testing.T) {
	err := fmt.Errorf("decode turn: %w", NewInvalid(CodeBadID, "tenant", "is bad"))
	if got := CodeOf(err); got != CodeBadID {
		t.Errorf("got %s, want %s", got, CodeBadID)
	}
	if got := CodeOf(fmt.Errorf("ask: %w", Refuse(CodeGone, "the log has it no longer", ""))); got != CodeGone {
		t.Errorf("got %s, want %s", got, CodeGone)
	}
	if got := CodeOf(errors.New("other")); got != CodeInternal {
		t.Errorf("got %s, want %s", got, CodeInternal)
	}
	if got := CodeOf(nil); got != "" {
		t.Errorf("got %s for no error", got)
	}
}

func TestInvalidText(t *testing.T) {
	e := &Invalid{Problems: []Problem{{CodeBadType, "turn", "must be a whole number"}, {CodeBadJSON, "", "the payload is no JSON"}}}
	if got, want := e.Error(), "turn must be a whole number; the payload is no JSON"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if e.Code() != CodeBadType || e.Hint() != Codes[CodeBadType].Hint {
		t.Errorf("got %s, %q", e.Code(), e.Hint())
	}
}
