package validate

import (
	"strings"

	"compactd/internal/events/codec"
)

// The rules of the Responses API: platform.openai.com/docs/api-reference/responses and
// guides/reasoning, and the texts of its 400s ("No tool output found for function call",
// "was provided without its required following item"), November 2026.

type responsesShape struct {
	bad                      bool
	kind, role               string
	id, callID, approvalID   string
	name                     string
	content                  content
	arguments, input, output codec.Kind
}

func readResponses(raw codec.Raw) (it responsesShape) {
	it.bad = readMessage(raw, func(r *codec.Strict, key []byte) {
		switch string(key) {
		case "type":
			it.kind = r.String()
		case "role":
			it.role = r.String()
		case "id":
			it.id = r.String()
		case "call_id":
			it.callID = r.String()
		case "approval_request_id":
			it.approvalID = r.String()
		case "name":
			it.name = r.String()
		case "content":
			it.content = readContent(r, func() { r.Skip() })
		case "arguments":
			it.arguments = r.Skip()
		case "input":
			it.input = r.Skip()
		case "output":
			it.output = r.Skip()
		default:
			r.Skip()
		}
	})
	return it
}

// responsesCall is a call that the caller carries out.
type responsesCall struct {
	index    int
	kind     string
	answered bool
}

// responsesHosted carry their results themselves.
var responsesHosted = map[string]bool{
	"web_search_call": true, "file_search_call": true, "code_interpreter_call": true, "image_generation_call": true, "mcp_call": true,
}

// responsesChecker goes over the items of a history.
type responsesChecker struct {
	*checker
	calls     map[string]*responsesCall
	order     []*responsesCall
	reasoning int  // index of the last item if it is reasoning, else -1
	caller    bool // the last item but for some of the provider is the caller's
}

func (c *checker) responses(items []codec.Raw) {
	r := responsesChecker{checker: c, calls: map[string]*responsesCall{}, reasoning: -1}
	for i, raw := range items {
		if it := readResponses(raw); c.whole(i, it.bad) {
			r.item(i, it)
		}
	}
	if c.sent {
		r.answered()
	}
}

func (r *responsesChecker) item(i int, it responsesShape) {
	switch {
	case it.kind == "" || it.kind == "message":
		r.message(i, it)
	case strings.HasSuffix(it.kind, "_output") || it.kind == "mcp_approval_response":
		r.fromCaller()
		r.output(i, it)
	case it.kind == "reasoning":
		r.fromModel()
		r.reasoning = i
	case it.kind == "compaction":
	case it.kind == "mcp_list_tools" || it.kind == "item_reference":
		r.fromModel()
	case strings.HasSuffix(it.kind, "_call") || it.kind == "mcp_approval_request":
		r.fromModel()
		r.call(i, it)
	default:
		r.report("bad_shape", i, "the type of an item is unknown")
	}
}

func (r *responsesChecker) message(i int, it responsesShape) {
	if k := it.content.kind; k != '"' && (k != '[' || it.content.empty) {
		r.report("bad_shape", i, "a message has no content")
	}
	switch it.role {
	case "assistant":
		r.fromModel()
	case "user", "system", "developer":
		r.fromCaller()
		r.answered()
	default:
		r.report("bad_shape", i, "the role is unknown")
	}
}

// fromModel is called at each item that a model made. One behind items of the caller begins
// a response, and calls before it have their outputs.
func (r *responsesChecker) fromModel() {
	if r.caller {
		r.answered()
	}
	r.caller, r.reasoning = false, -1
}

// fromCaller is called at each item of the caller.
func (r *responsesChecker) fromCaller() {
	if r.reasoning >= 0 {
		r.report("reasoning_followed", r.reasoning, "no item of the model follows a reasoning item")
	}
	r.caller, r.reasoning = true, -1
}

// answered reports the calls that are open where the conversation goes on without their
// outputs.
func (r *responsesChecker) answered() {
	for _, call := range r.order {
		if !call.answered {
			r.report("call_answered", call.index, "a call has no output")
		}
	}
	r.order = nil
}

func (r *responsesChecker) call(i int, it responsesShape) {
	id := it.callID
	switch it.kind {
	case "function_call":
		if it.name == "" || it.arguments != '"' {
			r.report("bad_shape", i, "a function_call lacks name or arguments")
			return
		}
	case "custom_tool_call":
		if it.name == "" || it.input != '"' {
			r.report("bad_shape", i, "a custom_tool_call lacks name or input")
			return
		}
	case "mcp_approval_request":
		id = it.id
	case "tool_search_call":
		if id == "" {
			return
		}
	}
	switch {
	case responsesHosted[it.kind]:
	case id == "":
		r.report("bad_shape", i, "a call has no call_id")
	case r.calls[id] != nil && !r.calls[id].answered:
		r.report("duplicate_call_id", i, "an open call has the same call_id")
	default:
		call := &responsesCall{index: i, kind: it.kind}
		r.calls[id], r.order = call, append(r.order, call)
	}
}

func (r *responsesChecker) output(i int, it responsesShape) {
	id := it.callID
	switch {
	case it.kind == "mcp_approval_response":
		id = it.approvalID
	case it.kind == "tool_search_output" && id == "":
		return
	case it.kind == "tool_search_output" || it.kind == "apply_patch_call_output":
	case it.output == 0 || it.output == 'n':
		r.report("bad_shape", i, "an output is absent")
		return
	}
	call := r.calls[id]
	if it.kind == "local_shell_call_output" && id == "" { // its id is its own
		id, call = it.id, r.open(it.kind)
	}
	switch {
	case id == "":
		r.report("bad_shape", i, "an output names no call")
	case call == nil:
		r.report("orphan_result", i, "no call before has this call_id")
	case responsesOutput(call.kind) != it.kind:
		r.report("orphan_result", i, "the call of this call_id is of another kind")
	case call.answered:
		r.report("duplicate_result", i, "the call has an output already")
	default:
		call.answered = true
		r.idTaken(i, responses, id)
	}
}

// open is the oldest call without an output of that type, nil for none.
func (r *responsesChecker) open(output string) *responsesCall {
	for _, call := range r.order {
		if !call.answered && responsesOutput(call.kind) == output {
			return call
		}
	}
	return nil
}

// responsesOutput is the type of the output of a call.
func responsesOutput(call string) string {
	switch call {
	case "mcp_approval_request":
		return "mcp_approval_response"
	case "tool_search_call":
		return "tool_search_output"
	}
	return call + "_output"
}
