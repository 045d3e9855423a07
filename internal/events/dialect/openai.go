package dialect

import (
	"bytes"
	"slices"

	"compactd/internal/events/codec"
)

var openai = Dialect{
	Name: "openai", Roles: "system, developer, user, assistant, tool",
	Call: "has tool_calls without id", Result: "is a tool's and has no tool_call_id",
	Paired: true, Exchange: ByMessage, Results: RoleTool,
	roles: map[string]Role{
		"system": RoleSystem, "developer": RoleSystem, "user": RoleUser, "assistant": RoleAssistant, "tool": RoleTool, "function": RoleTool,
	},
	read: readOpenAI, append: appendMembers(writeOpenAI), inPlace: true,
}

// openaiMessage is what a message of OpenAI's chat completions consists of.
type openaiMessage struct {
	role, content, name, callID, legacy codec.Raw

	aside    codec.Raw // what an answer without content consists of
	thinking Part

	parts, calls []Part
	badCalls     bool
}

func readOpenAI(d *Dialect, w *Reader) (Message, error) {
	var o openaiMessage
	o.read(w)
	if w.Failed() {
		return Message{}, ErrNoMessage
	}
	m := Message{Role: d.role(o.role), Parts: o.parts}
	switch {
	case m.Role == "":
		return m, ErrNoRole
	case o.badCalls:
		return m, ErrBadCalls
	case m.Role == RoleAssistant:
		if !slices.Contains([]codec.Kind{0, 'n', '"', '['}, o.content.Kind()) {
			return m, ErrNoContent
		}
		if o.legacy.Kind() == '{' {
			o.calls = append(o.calls, w.legacyCall(o.legacy))
		}
		if len(o.calls) > 0 && string(o.content) == `""` {
			m.Parts = nil // agents send "" for null beside calls
		}
		m.Parts = append(m.Parts, o.calls...)
		if o.thinking.Raw != nil {
			m.Parts = append(m.Parts, o.thinking)
		}
		if o.aside != nil && !slices.ContainsFunc(m.Parts, hasContent) {
			m.Parts = append(m.Parts, Part{Kind: PartOther, Raw: o.aside, Locked: true, Aside: true})
		} else if o.aside != nil { // it goes back with the message
			w.beside(o.aside)
		}
	case o.content.Kind() != '"' && o.content.Kind() != '[':
		return m, ErrNoContent
	case m.Role == RoleTool:
		m.Parts = []Part{o.result(w)}
	}
	return m, nil
}

func hasContent(p Part) bool { return p.Kind != PartText || !p.Blank() }

func (o *openaiMessage) read(w *Reader) {
	w.Object(func(key []byte) {
		switch string(key) {
		case "role":
			o.role = w.Value()
		case "content":
			o.content, o.parts = readContent(w, w.room(), readPlainBlock)
		case "name":
			o.name = w.Value()
		case "tool_call_id":
			o.callID = w.CallID()
		case "function_call":
			o.legacy = w.Value()
		case "tool_calls":
			o.readCalls(w)
		case "refusal", "audio", "reasoning_content", "reasoning":
			if v := w.Value(); v.Kind() != 'n' && string(v) != `""` {
				o.aside = v
			}
		case reasoningDetails:
			o.readThinking(w)
		default:
			w.other(key)
		}
	})
}

// reasoningDetails has the thinking of a model that OpenRouter serves, with its signatures:
// openrouter.ai/docs/use-cases/reasoning-tokens, read 2026-11. It is to come back unmodified.
const reasoningDetails = "reasoning_details"

func (o *openaiMessage) readThinking(w *Reader) {
	if w.Kind() != '[' {
		w.Value()
		return
	}
	p := Part{Kind: PartThinking, Aside: true}
	p.Raw = w.Array(func() { w.Value() })
	if string(p.Raw) != "[]" {
		o.thinking = p
	}
}

func (o *openaiMessage) readCalls(w *Reader) {
	o.calls, o.badCalls = nil, false
	if w.Kind() != '[' {
		v := w.Value()
		o.badCalls = v.Kind() != 'n'
		return
	}
	w.Array(func() {
		if w.Kind() != '{' {
			w.Value()
			o.badCalls = true
			return
		}
		o.calls = append(o.calls, readOpenAICall(w))
	})
}

// result makes the one part of a tool message. A content that is an array is the part's Raw, so that an edit
// of other parts keeps it.
func (o *openaiMessage) result(w *Reader) Part {
	p := Part{Kind: PartResult}
	p.answer(o.parts)
	w.tool(&p, o.name)
	w.call(&p, o.callID)
	p.NoID = p.NoID && string(codec.TextBytes(o.role)) == "tool" // the older role function has none
	if o.content.Kind() == '[' {
		p.Raw = o.content
	} else if len(o.parts) == 1 {
		p.Source = o.parts[0].Source
	}
	return p
}

// readOpenAICall reads one element of tool_calls, of type function or custom.
func readOpenAICall(w *Reader) Part {
	var id, name, args codec.Raw
	function := func(key []byte) {
		switch string(key) {
		case "name":
			name = w.Value()
		case "arguments", "input":
			args = w.Value()
		default:
			w.Value()
		}
	}
	p := Part{Kind: PartCall}
	p.Raw = w.Object(func(key []byte) {
		switch {
		case string(key) == "id":
			id = w.CallID()
		case (string(key) == "function" || string(key) == "custom") && w.Kind() == '{':
			w.Object(function)
		default:
			w.rest(key)
		}
	})
	w.call(&p, id)
	w.tool(&p, name)
	p.Args = innerJSON(args)
	return p
}

// legacyCall reads a function_call, which had no id.
func (w *Reader) legacyCall(raw codec.Raw) Part {
	ms, _ := codec.ReadObject(raw) // the walker has read it as an object
	p := Part{Kind: PartCall, Args: innerJSON(codec.Lookup(ms, "arguments")), Raw: raw}
	w.tool(&p, codec.Lookup(ms, "name"))
	return p
}

// innerJSON returns the JSON in the string args, and args itself if it has none: models sometimes write
// invalid arguments.
func innerJSON(args codec.Raw) codec.Raw {
	if args.Kind() != '"' {
		return args
	}
	inner := codec.Raw(codec.TextBytes(args))
	if codec.Check(inner) != nil || codec.TooDeep(inner) {
		return args
	}
	return codec.Clean(inner)
}

func writeOpenAI(m Message, ms []codec.Member) ([]codec.Member, error) {
	if m.Role == RoleTool {
		return writeOpenAIResult(m, ms)
	}
	var content []Part
	var calls []codec.Raw
	legacy := legacyPart(m.Parts, codec.Lookup(ms, "function_call"))
	if legacy >= 0 && m.Parts[legacy].Edited {
		ms = codec.SetMember(ms, "function_call", openAICall(m.Parts[legacy]))
	}
	thinks := m.Role != RoleAssistant // their member is not thinking
	for i, p := range m.Parts {
		switch {
		case p.Kind == PartResult, p.Kind == PartCall && m.Role != RoleAssistant:
			return nil, errMisplaced
		case p.Aside: // its member is in ms
			thinks = thinks || p.Kind == PartThinking
		case p.Kind != PartCall:
			content = append(content, p)
		case p.Raw == nil:
			calls = append(calls, createOpenAICall(p))
		case i != legacy:
			calls = append(calls, openAICall(p))
		}
	}
	if ms == nil {
		ms = []codec.Member{{Name: "role", Value: codec.Quote(string(m.Role))}}
		for _, p := range m.Parts {
			if p.Aside && p.Kind == PartThinking && p.Raw == nil {
				ms = codec.SetMember(ms, "reasoning_content", codec.Quote(p.Text))
			}
		}
	}
	if len(content) == 0 && m.Role == RoleAssistant {
		if was := codec.Lookup(ms, "content"); m.Raw == nil || was != nil && string(was) != `""` {
			ms = codec.SetMember(ms, "content", codec.Raw(`null`))
		}
	} else {
		c, err := appendTexts(content, textBlock)
		if err != nil {
			return nil, err
		}
		ms = codec.SetMember(ms, "content", c)
	}
	ms = slices.DeleteFunc(ms, func(x codec.Member) bool {
		return x.Name == "function_call" && legacy < 0 || x.Name == "tool_calls" && len(calls) == 0 || x.Name == reasoningDetails && !thinks
	})
	if len(calls) > 0 {
		ms = codec.SetMember(ms, "tool_calls", codec.WriteArray(calls))
	}
	return ms, nil
}

// openAICall returns a call as it came, with its arguments replaced where they were edited.
func openAICall(p Part) codec.Raw {
	if !p.Edited {
		return p.Raw
	}
	args := openAIArguments(p)
	for _, x := range []struct{ object, arguments string }{{"function", "arguments"}, {"custom", "input"}} {
		if inner, err := codec.WithMember(codec.Get(p.Raw, x.object), x.arguments, args); err == nil {
			raw, _ := codec.WithMember(p.Raw, x.object, inner) // an object: it was read as one
			return raw
		}
	}
	raw, _ := codec.WithMember(p.Raw, "arguments", args)
	return raw
}

// legacyPart returns the part that is the function_call, -1 for none: the last that looks like it, as it was
// read after the other calls.
func legacyPart(parts []Part, functionCall codec.Raw) int {
	for i, p := range slices.Backward(parts) {
		if p.Kind == PartCall && p.Raw != nil && bytes.Equal(p.Raw, functionCall) {
			return i
		}
	}
	return -1
}

func writeOpenAIResult(m Message, ms []codec.Member) ([]codec.Member, error) {
	if len(m.Parts) != 1 || m.Parts[0].Kind != PartResult {
		return nil, errMisplaced
	}
	p := m.Parts[0]
	if ms == nil {
		ms = []codec.Member{{Name: "role", Value: codec.Raw(`"tool"`)}, {Name: "tool_call_id", Value: codec.Quote(p.CallID)}}
	}
	if p.Raw != nil && !p.Edited {
		return codec.SetMember(ms, "content", p.Raw), nil
	}
	return codec.SetMember(ms, "content", codec.Quote(p.Text)), nil
}

func createOpenAICall(p Part) codec.Raw {
	function := codec.WriteObject([]codec.Member{{Name: "name", Value: codec.Quote(p.Tool)}, {Name: "arguments", Value: openAIArguments(p)}})
	return codec.WriteObject([]codec.Member{{Name: "id", Value: codec.Quote(p.CallID)}, {Name: "type", Value: codec.Raw(`"function"`)}, {Name: "function", Value: function}})
}

// openAIArguments are the arguments of a call in a string.
func openAIArguments(p Part) codec.Raw {
	args := arguments(p)
	if args.Kind() == '"' { // arguments that were no JSON
		return args
	}
	return codec.Quote(string(args))
}
