package events

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// openaiMessage is what a message of OpenAI's chat completions consists of.
type openaiMessage struct {
	role, content, name, callID, legacy Raw

	parts, calls []Part
	badCalls     bool
}

func readOpenAI(w walker) (Message, error) {
	var o openaiMessage
	o.read(&w)
	if w.end() != nil {
		return Message{}, errNoMessage
	}
	m := Message{Role: o.model(), Parts: o.parts}
	switch {
	case m.Role == "":
		return m, errNoRole
	case o.badCalls:
		return m, errBadCalls
	case m.Role == RoleAssistant:
		if !slices.Contains([]jsonKind{0, 'n', '"', '['}, o.content.Kind()) {
			return m, errNoContent
		}
		if o.legacy.Kind() == '{' {
			o.calls = append(o.calls, legacyCall(o.legacy))
		}
		if len(o.calls) > 0 && string(o.content) == `""` {
			m.Parts = nil // agents send "" for null beside calls
		}
		m.Parts = append(m.Parts, o.calls...)
	case o.content.Kind() != '"' && o.content.Kind() != '[':
		return m, errNoContent
	case m.Role == RoleTool:
		m.Parts = []Part{o.result()}
	}
	return m, nil
}

func (o *openaiMessage) read(w *walker) {
	w.object(func(key []byte) {
		switch string(key) {
		case "role":
			o.role = w.value()
		case "content":
			o.content, o.parts = readContent(w, readPlainBlock)
		case "name":
			o.name = w.value()
		case "tool_call_id":
			o.callID = w.value()
		case "function_call":
			o.legacy = w.value()
		case "tool_calls":
			o.readCalls(w)
		default:
			w.value()
		}
	})
}

func (o *openaiMessage) readCalls(w *walker) {
	o.calls, o.badCalls = nil, false
	if w.kind() != '[' {
		v := w.value()
		o.badCalls = v.Kind() != 'n'
		return
	}
	w.array(func() {
		if w.kind() != '{' {
			w.value()
			o.badCalls = true
			return
		}
		o.calls = append(o.calls, readOpenAICall(w))
	})
}

func (o *openaiMessage) model() Role {
	switch string(bare(o.role)) {
	case "system", "developer":
		return RoleSystem
	case "user":
		return RoleUser
	case "assistant":
		return RoleAssistant
	case "tool", "function":
		return RoleTool
	default:
		return ""
	}
}

// result makes the one part of a tool message. A content that is an array is
// the part's Raw, so that it survives an edit that leaves it alone.
func (o *openaiMessage) result() Part {
	p := Part{Kind: PartResult}
	p.answer(o.parts)
	p.Tool, _ = unquote(o.name)
	p.CallID, _ = unquote(o.callID)
	p.NoID = p.CallID == "" && string(bare(o.role)) == "tool" // the older role function has none
	if o.content.Kind() == '[' {
		p.Raw = o.content
	}
	return p
}

// readOpenAICall reads one element of tool_calls, of type function or custom.
func readOpenAICall(w *walker) Part {
	var id, name, args Raw
	function := func(key []byte) {
		switch string(key) {
		case "name":
			name = w.value()
		case "arguments", "input":
			args = w.value()
		default:
			w.value()
		}
	}
	p := Part{Kind: PartCall}
	p.Raw = w.object(func(key []byte) {
		switch {
		case string(key) == "id":
			id = w.value()
		case (string(key) == "function" || string(key) == "custom") && w.kind() == '{':
			w.object(function)
		default:
			w.value()
		}
	})
	p.CallID, _ = unquote(id)
	p.NoID = p.CallID == ""
	p.Tool, _ = unquote(name)
	p.Args = innerJSON(args)
	return p
}

// legacyCall reads a function_call, which had no id.
func legacyCall(raw Raw) Part {
	ms, _ := members(raw) // the walker has read it as an object
	p := Part{Kind: PartCall, Args: innerJSON(lookup(ms, "arguments")), Raw: raw}
	p.Tool, _ = unquote(lookup(ms, "name"))
	return p
}

// innerJSON returns the JSON that the string args holds, and args itself where
// it holds none: models write broken arguments at times.
func innerJSON(args Raw) Raw {
	if args.Kind() != '"' {
		return args
	}
	inner := Raw(bare(args))
	if !inner.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) || tooDeep(inner) {
		return args
	}
	return clean(inner)
}

func writeOpenAI(m Message, ms []member) ([]member, error) {
	if m.Role == RoleTool {
		return writeOpenAIResult(m, ms)
	}
	var content []Part
	var calls []Raw
	legacy := legacyPart(m.Parts, lookup(ms, "function_call"))
	for i, p := range m.Parts {
		switch {
		case p.Kind == PartResult, p.Kind == PartCall && m.Role != RoleAssistant:
			return nil, errMisplaced
		case p.Kind != PartCall:
			content = append(content, p)
		case p.Raw == nil:
			calls = append(calls, createOpenAICall(p))
		case i != legacy:
			calls = append(calls, p.Raw)
		}
	}
	if ms == nil {
		ms = []member{{"role", quote(string(m.Role))}}
	}
	if len(content) == 0 && m.Role == RoleAssistant {
		if was := lookup(ms, "content"); m.Raw == nil || was != nil && string(was) != `""` {
			ms = set(ms, "content", Raw(`null`))
		}
	} else {
		c, err := writeContent(content, createOpenAIBlock)
		if err != nil {
			return nil, err
		}
		ms = set(ms, "content", c)
	}
	ms = slices.DeleteFunc(ms, func(x member) bool {
		return x.name == "function_call" && legacy < 0 || x.name == "tool_calls" && len(calls) == 0
	})
	if len(calls) > 0 {
		ms = set(ms, "tool_calls", array(calls))
	}
	return ms, nil
}

// legacyPart returns which part is the function_call, -1 for none: the last that
// looks like it, as it was read behind the other calls.
func legacyPart(parts []Part, functionCall Raw) int {
	for i, p := range slices.Backward(parts) {
		if p.Kind == PartCall && p.Raw != nil && bytes.Equal(p.Raw, functionCall) {
			return i
		}
	}
	return -1
}

func writeOpenAIResult(m Message, ms []member) ([]member, error) {
	if len(m.Parts) != 1 || m.Parts[0].Kind != PartResult {
		return nil, errMisplaced
	}
	p := m.Parts[0]
	if ms == nil {
		ms = []member{{"role", Raw(`"tool"`)}, {"tool_call_id", quote(p.CallID)}}
	}
	if p.Raw != nil && !p.Edited {
		return set(ms, "content", p.Raw), nil
	}
	return set(ms, "content", quote(p.Text)), nil
}

func createOpenAIBlock(p Part) (Raw, error) {
	if p.Kind != PartText {
		return nil, errCannotMake
	}
	return textBlock(p.Text), nil
}

func createOpenAICall(p Part) Raw {
	args := arguments(p)
	if args.Kind() != '"' { // a string is arguments that were no JSON
		args = quote(string(args))
	}
	function := object([]member{{"name", quote(p.Tool)}, {"arguments", args}})
	return object([]member{{"id", quote(p.CallID)}, {"type", Raw(`"function"`)}, {"function", function}})
}
