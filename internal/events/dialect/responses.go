package dialect

import (
	"slices"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/weigh"
)

// responses are the items of OpenAI's Responses API, as input takes them and output has
// them. Sources, read in November 2026: platform.openai.com/docs/api-reference/responses,
// guides/reasoning and guides/conversation-state; openai-python types/responses,
// response_input_item_param.py.
//
// The items that a model made in one response, with the outputs of their calls, are one
// unit: a reasoning item is refused without the item behind it, and that without its
// reasoning. So the unit stays or goes as a whole, and only outputs are edited. An edited
// item loses its id, by which the original would be found again.
var responses = Dialect{
	Name: "openai-responses", Roles: "user, assistant, system, developer",
	Call: "is a call without call_id", Result: "is an output without call_id",
	Paired: true, Units: true, Results: RoleTool,
	roles: map[string]Role{"system": RoleSystem, "developer": RoleSystem, "user": RoleUser, "assistant": RoleAssistant},
	read:  readResponses, append: appendMembers(writeResponses),
}

// toolForm is the form of a call that the caller carries out, and of its output.
type toolForm struct {
	kind  string    // of the call
	input string    // member that holds what the tool is called with
	empty codec.Raw // its value in a call that compactd makes
	text  bool      // its output is a text, which may be edited
}

// toolForms are the kinds of calls whose results come from the caller.
var toolForms = []toolForm{
	{"function_call", "arguments", codec.Raw(`"{}"`), true},
	{"custom_tool_call", "input", codec.Raw(`""`), true},
	{"local_shell_call", "action", codec.Raw(`{"type":"exec","command":[],"env":{}}`), true},
	{"shell_call", "action", codec.Raw(`{"commands":[]}`), true},
	{"apply_patch_call", "operation", codec.Raw(`{"type":"delete_file","path":"unknown"}`), true},
	{"computer_call", "action", codec.Raw(`{"type":"screenshot"}`), false},
	{"tool_search_call", "arguments", codec.Raw(`{}`), false},
	{approvalRequest, "arguments", codec.Raw(`"{}"`), false},
}

const (
	approvalRequest  = "mcp_approval_request"
	approvalResponse = "mcp_approval_response"
	outputOf         = "_output" // behind the kind of the call
)

// formOf is the form of a call or output of a kind; that of function_call where it is unknown.
func formOf(kind string) toolForm {
	if kind == approvalResponse {
		kind = approvalRequest
	}
	kind = strings.TrimSuffix(kind, outputOf)
	i := slices.IndexFunc(toolForms, func(f toolForm) bool { return f.kind == kind || strings.TrimSuffix(f.kind, "_call") == kind })
	return toolForms[max(i, 0)]
}

// hosted are calls that the provider carries out: their results are in them.
var hosted = []string{"web_search_call", "file_search_call", "code_interpreter_call", "mcp_call"}

// imageGeneration is one of which the result is a picture.
const imageGeneration = "image_generation_call"

// responsesItem is what an item consists of.
type responsesItem struct {
	kind, role, name, args, status codec.Raw
	id, callID                     codec.Raw
	content                        codec.Raw
	output                         codec.Measured
	parts, thoughts, answers       []Part
	made                           Part // picture that the provider made
}

func readResponses(d *Dialect, w *Reader) (Message, error) {
	var it responsesItem
	raw := it.read(w)
	if w.Failed() {
		return Message{}, ErrNoMessage
	}
	kind := string(codec.TextBytes(it.kind))
	if it.kind != nil && kind != "message" { // its part is the whole item
		w.unknown, w.extra = nil, weigh.Size{}
	}
	switch {
	case it.kind == nil || kind == "message":
		return it.message(d)
	case kind == "reasoning":
		p := Part{Kind: PartThinking}
		p.answer(append(it.thoughts, it.parts...))
		p.Raw = raw
		return Message{Role: RoleAssistant, Parts: append(w.room(), p)}, nil
	case kind == "compaction": // what came before is in it, and no one else can read it: it is pinned
		return Message{Role: RoleSystem, Parts: append(w.room(), Part{Kind: PartOther, Raw: raw, Locked: true})}, nil
	case strings.HasSuffix(kind, outputOf), kind == approvalResponse:
		return Message{Role: RoleTool, Parts: append(w.room(), it.result(w, kind, raw))}, nil
	case kind == "mcp_list_tools", kind == "item_reference", strings.HasSuffix(kind, "_call"), kind == approvalRequest:
		return Message{Role: RoleAssistant, Parts: append(w.room(), it.call(w, kind, raw))}, nil
	default:
		return Message{}, ErrNoRole
	}
}

func (it *responsesItem) read(w *Reader) codec.Raw {
	from := w.Position()
	raw := w.Object(func(key []byte) {
		switch string(key) {
		case "type":
			if it.kind = w.Value(); string(it.kind) == `"message"` {
				w.Omitted() // so is an item with a role alone
			}
		case "role":
			it.role = w.Value()
		case "content":
			it.content, it.parts = readContent(w, w.room(), readResponsesBlock)
		case "summary":
			_, it.thoughts = w.blocks(nil, readResponsesBlock)
		case "name":
			it.name = w.Value()
		case "arguments", "input", "action", "actions", "operation":
			it.args = w.Value()
		case "call_id", "approval_request_id":
			it.callID = w.CallID()
		case "id":
			it.id = w.Omit()
		case "status":
			if it.status = w.Value(); string(codec.TextBytes(it.status)) != "failed" {
				w.Omitted() // how far the provider is with it
			}
		case "result":
			w.inline(&it.made)
		case "output":
			output := w.Position()
			switch it.answers = nil; w.Kind() {
			case '[':
				it.output.Raw, it.answers = w.blocks(w.innerRoom(), readResponsesBlock)
			case '{': // a screenshot is one block
				var p Part
				if readResponsesBlock(w, &p); p.Kind == PartImage {
					it.answers = append(w.innerRoom(), p)
				}
				it.output = codec.Measured{Raw: p.Raw}
			default:
				it.output = w.Text()
			}
			w.sameContent(output)
		default:
			w.other(key)
		}
	})
	if string(it.kind) == `"item_reference"` { // its id is all that it has
		w.Replace(from, codec.WriteObject([]codec.Member{{Name: "id", Value: codec.Clean(it.id)}, {Name: "type", Value: it.kind}}))
	}
	return raw
}

func (it *responsesItem) message(d *Dialect) (Message, error) {
	m, k := Message{Role: d.role(it.role), Parts: it.parts}, it.content.Kind()
	switch {
	case m.Role == "":
		return m, ErrNoRole
	case k != '"' && k != '[':
		return m, ErrNoContent
	}
	return m, nil
}

// readResponsesBlock reads a block of a message, of reasoning or of an output.
func readResponsesBlock(w *Reader, p *Part) {
	var kind codec.Raw
	var text, refusal codec.Measured
	low := false
	p.Raw = w.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = w.Value()
		case "text":
			text = w.Text()
		case "refusal":
			refusal = w.Text()
		case "detail":
			low = w.low()
		case "image_url", "file_data":
			w.inline(p)
		case "input_audio":
			w.media(p)
		default:
			w.rest(key)
		}
	})
	switch string(codec.TextBytes(kind)) {
	case "refusal":
		text = refusal
		fallthrough
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		w.plain(p, text)
	case "input_file":
		p.Kind, p.Papers = PartImage, 1
	case "input_image", "input_audio", "computer_screenshot":
		if p.Kind = PartImage; low {
			p.Media = p.Media.Low()
		}
	}
}

// pairing is the id that pairs a call and its output.
func (it *responsesItem) pairing() codec.Raw {
	if it.callID.Kind() == '"' && len(it.callID) > len(`""`) {
		return it.callID
	}
	return it.id
}

func (it *responsesItem) call(w *Reader, kind string, raw codec.Raw) Part {
	if kind == imageGeneration {
		return Part{Kind: PartImage, Media: it.made.Media, Raw: raw}
	}
	server := kind == "tool_search_call" && it.callID.Kind() != '"'
	if server || kind == "mcp_list_tools" || kind == "item_reference" || slices.Contains(hosted, kind) {
		return Part{Kind: PartOther, Raw: raw}
	}
	p := Part{Kind: PartCall, Args: innerJSON(it.args), Raw: raw}
	w.call(&p, it.pairing())
	if w.tool(&p, it.name); p.Tool == "" {
		p.Tool = strings.TrimSuffix(kind, "_call")
	}
	return p
}

func (it *responsesItem) result(w *Reader, kind string, raw codec.Raw) Part {
	p := Part{Kind: PartResult}
	switch k := it.output.Raw.Kind(); {
	case k == '[', len(it.answers) > 0:
		p.answer(it.answers)
	case !w.text(&p, it.output) && k != 0:
		p.Text = string(it.output.Raw)
	}
	p.Raw, p.Locked = raw, !formOf(kind).text || kind == "tool_search_output"
	p.Failed = string(codec.TextBytes(it.status)) == "failed"
	if w.call(&p, it.pairing()); kind == "local_shell_call_output" && it.callID == nil {
		p.CallID, p.Call, p.NoID = "", 0, false // its id is no call's: what belongs together is found by place
	}
	return p
}

func writeResponses(m Message, ms []codec.Member) ([]codec.Member, error) {
	if ms == nil {
		return createResponses(m)
	}
	kind := codec.String(codec.Lookup(ms, "type"))
	switch {
	case kind == "" || kind == "message":
		content, err := appendTexts(m.Parts, func(text string) codec.Raw { return responsesText(m.Role, text) })
		if err != nil {
			return nil, err
		}
		return codec.SetMember(without(ms, "id"), "content", content), nil
	case len(m.Parts) != 1:
		return nil, errMisplaced
	}
	p := &m.Parts[0]
	if p.Kind != PartResult || !p.Edited || p.Locked {
		return ms, nil
	}
	if codec.Lookup(ms, "call_id") != nil {
		ms = without(ms, "id")
	}
	return codec.SetMember(ms, "output", outputText(kind, p.Text)), nil
}

// outputText is a text as the output of a kind.
func outputText(kind, text string) codec.Raw {
	if kind != "shell_call_output" {
		return codec.Quote(text)
	}
	return codec.WriteArray([]codec.Raw{codec.WriteObject([]codec.Member{
		{Name: "stdout", Value: codec.Quote(text)}, {Name: "stderr", Value: codec.Raw(`""`)}, {Name: "outcome", Value: codec.Raw(`{"type":"exit","exit_code":0}`)},
	})})
}

// createResponses makes an item. Nothing that compactd makes has an id.
func createResponses(m Message) ([]codec.Member, error) {
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case PartCall:
			return createResponsesCall(p), nil
		case PartResult:
			return createResponsesOutput(p), nil
		}
	}
	content, err := appendTexts(m.Parts, func(text string) codec.Raw { return responsesText(m.Role, text) })
	if err != nil {
		return nil, err
	}
	return []codec.Member{{Name: "type", Value: codec.Raw(`"message"`)}, {Name: "role", Value: codec.Quote(string(m.Role))}, {Name: "content", Value: content}}, nil
}

// responsesText is a text as a block of a message.
func responsesText(r Role, text string) codec.Raw {
	kind := codec.Raw(`"input_text"`)
	if r == RoleAssistant {
		kind = codec.Raw(`"output_text"`)
	}
	return codec.WriteObject([]codec.Member{{Name: "type", Value: kind}, {Name: "text", Value: codec.Quote(text)}})
}

// createResponsesCall makes a call: that of an output that has none in the form of its kind.
func createResponsesCall(p *Part) []codec.Member {
	f := formOf(codec.String(codec.Get(p.Other, "type")))
	ms := []codec.Member{{Name: "type", Value: codec.Quote(f.kind)}}
	if f.kind == approvalRequest {
		return append(ms, codec.Member{Name: "id", Value: codec.Quote(p.CallID)}, codec.Member{Name: "name", Value: codec.Quote(p.Tool)},
			codec.Member{Name: "server_label", Value: codec.Quote(p.Tool)}, codec.Member{Name: f.input, Value: f.empty})
	}
	ms = append(ms, codec.Member{Name: "call_id", Value: codec.Quote(p.CallID)})
	if f.kind == "function_call" || f.kind == "custom_tool_call" {
		ms = append(ms, codec.Member{Name: "name", Value: codec.Quote(p.Tool)})
	}
	if f.kind == "function_call" && p.Args != nil {
		return append(ms, codec.Member{Name: f.input, Value: openAIArguments(*p)})
	}
	return append(ms, codec.Member{Name: f.input, Value: f.empty})
}

// blank is a picture of one pixel, in place of the screenshot that a computer_call has to have.
const (
	blankHead = "data:image/png;base64,"
	blank     = blankHead + "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)

// createResponsesOutput makes the output of a call that has none, in the form of its kind.
func createResponsesOutput(p *Part) []codec.Member {
	f := formOf(codec.String(codec.Get(p.Other, "type")))
	id := codec.Quote(p.CallID)
	if f.kind == approvalRequest {
		return []codec.Member{{Name: "type", Value: codec.Quote(approvalResponse)}, {Name: "approval_request_id", Value: id}, {Name: "approve", Value: codec.Raw(`false`)}}
	}
	kind := f.kind + outputOf
	output := outputText(kind, p.Text)
	ms := []codec.Member{{Name: "call_id", Value: id}}
	switch f.kind {
	case "computer_call":
		output = codec.WriteObject([]codec.Member{{Name: "type", Value: codec.Raw(`"computer_screenshot"`)}, {Name: "image_url", Value: codec.Quote(blank)}})
	case "tool_search_call":
		return append([]codec.Member{{Name: "type", Value: codec.Raw(`"tool_search_output"`)}}, append(ms, codec.Member{Name: "tools", Value: codec.Raw(`[]`)})...)
	case "apply_patch_call":
		ms = append(ms, codec.Member{Name: "status", Value: codec.Raw(`"failed"`)})
	}
	ms = append([]codec.Member{{Name: "type", Value: codec.Quote(kind)}}, ms...)
	return append(ms, codec.Member{Name: "output", Value: output})
}
