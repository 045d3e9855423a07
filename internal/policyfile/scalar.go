package policyfile

import (
	"errors"
	"reflect"

	"github.com/goccy/go-yaml/ast"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/codec"
)

// scalar reads anything but a mapping.
func scalar(n ast.Node, t reflect.Type) (codec.Raw, error) {
	switch {
	case t == reflect.TypeFor[measure.PPM]():
		var p measure.PPM
		if n.Type() != ast.IntegerType && n.Type() != ast.FloatType {
			return nil, errors.New("must be a decimal of at most six places, such as 0.8")
		}
		if err := p.UnmarshalJSON([]byte(n.GetToken().Value)); err != nil {
			return nil, err
		}
		return codec.Marshal(p)
	case t.Kind() == reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			return codec.Marshal(b.Value)
		}
		return nil, errors.New("must be true or false")
	case t.Kind() == reflect.Int64:
		i, ok := integer(n)
		if !ok {
			return nil, errors.New("must be a whole number")
		}
		return codec.Marshal(i)
	case t.Kind() == reflect.String:
		if s, ok := n.(*ast.StringNode); ok {
			return codec.Marshal(s.Value)
		}
		return nil, errors.New("must be a string")
	default:
		return list(n)
	}
}

func integer(n ast.Node) (int64, bool) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch v := i.Value.(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= 1<<62
	}
	return 0, false
}

// list reads texts.
func list(n ast.Node) (codec.Raw, error) {
	bad := errors.New("must be a list of strings, such as [skill]")
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, bad
	}
	out := []string{}
	for _, v := range s.Values {
		t, ok := v.(*ast.StringNode)
		if !ok {
			return nil, bad
		}
		out = append(out, t.Value)
	}
	return codec.Marshal(out)
}
