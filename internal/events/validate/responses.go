package validate

import (
	"strings"

	"compactd/internal/events/codec"
)

// The rules of the Responses API: platform.openai.com/docs/api-reference/responses and
// guides/reasoning, and the texts of its 400s ("No tool output found for function call",
// "was provided without its required following item"), November 2026.

type responsesItem struct {
	Kind       string                    `json:"type"`
	Role       string                    `json:"role"`
	ID         string                    `json:"id"`
	CallID     string                    `json:"call_id"`
	ApprovalID string                    `json:"approval_request_id"`
	Name       string                    `json:"name"`
	Content    codec.Content[codec.Type] `json:"content"`
	Arguments  codec.Type                `json:"arguments"`
	Input      codec.Type                `json:"input"`
	Output     codec.Type                `json:"output"`
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
		if it := codec.ReadStrict[responsesItem](raw); c.whole(i, it.Bad) {
			r.item(i, &it.Of)
		}
	}
	if c.sent {
		r.answered()
	}
}

func (r *responsesChecker) item(i int, it *responsesItem) {
	switch {
	case it.Kind == "" || it.Kind == "message":
		r.message(i, it)
	case strings.HasSuffix(it.Kind, "_output") || it.Kind == "mcp_approval_response":
		r.fromCaller()
		r.output(i, it)
	case it.Kind == "reasoning":
		r.fromModel()
		r.reasoning = i
	case it.Kind == "compaction":
	case it.Kind == "mcp_list_tools" || it.Kind == "item_reference":
		r.fromModel()
	case strings.HasSuffix(it.Kind, "_call") || it.Kind == "mcp_approval_request":
		r.fromModel()
		r.call(i, it)
	default:
		r.report("bad_shape", i, "the type of an item is unknown")
	}
}

func (r *responsesChecker) message(i int, it *responsesItem) {
	if k := it.Content.Type; k != '"' && (k != '[' || it.Content.Empty()) {
		r.report("bad_shape", i, "a message has no content")
	}
	switch it.Role {
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

func (r *responsesChecker) call(i int, it *responsesItem) {
	id := it.CallID
	switch it.Kind {
	case "function_call":
		if it.Name == "" || it.Arguments != '"' {
			r.report("bad_shape", i, "a function_call lacks name or arguments")
			return
		}
	case "custom_tool_call":
		if it.Name == "" || it.Input != '"' {
			r.report("bad_shape", i, "a custom_tool_call lacks name or input")
			return
		}
	case "mcp_approval_request":
		id = it.ID
	case "tool_search_call":
		if id == "" {
			return
		}
	}
	switch {
	case responsesHosted[it.Kind]:
	case id == "":
		r.report("bad_shape", i, "a call has no call_id")
	case r.calls[id] != nil && !r.calls[id].answered:
		r.report("duplicate_call_id", i, "an open call has the same call_id")
	default:
		call := &responsesCall{index: i, kind: it.Kind}
		r.calls[id], r.order = call, append(r.order, call)
	}
}

func (r *responsesChecker) output(i int, it *responsesItem) {
	id := it.CallID
	switch {
	case it.Kind == "mcp_approval_response":
		id = it.ApprovalID
	case it.Kind == "tool_search_output" && id == "":
		return
	case it.Kind == "tool_search_output" || it.Kind == "apply_patch_call_output":
	case it.Output == 0 || it.Output == 'n':
		r.report("bad_shape", i, "an output is absent")
		return
	}
	call := r.calls[id]
	if it.Kind == "local_shell_call_output" && id == "" { // its id is its own
		id, call = it.ID, r.open(it.Kind)
	}
	switch {
	case id == "":
		r.report("bad_shape", i, "an output names no call")
	case call == nil:
		r.report("orphan_result", i, "no call before has this call_id")
	case responsesOutput(call.kind) != it.Kind:
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
