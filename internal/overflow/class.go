package overflow

import "compactd/internal/events"

// Class states why a provider refused a call.
type Class string

// The classes. The first four are overflows: a compaction repairs them.
const (
	// ClassInput: the input has more tokens than the model takes.
	ClassInput Class = "input_too_long"
	// ClassSum: input and maximum output together exceed the window. A smaller
	// maximum output repairs it as well.
	ClassSum Class = "input_and_output_too_long"
	// ClassBytes: the request has too many bytes, for the provider or for a proxy before it. It shows nothing
	// of the window, but only a shorter history passes.
	ClassBytes Class = "request_too_large"
	// ClassMedia: the request has more images and pages of documents than the provider accepts, however few
	// tokens they are. It shows nothing of the window.
	ClassMedia Class = "too_many_media"

	// ClassOutput: the maximum output is larger than the model's, or leaves next to
	// no room for an input that would fit. No compaction repairs that.
	ClassOutput Class = "output_too_long"
	// ClassRate: too many calls or tokens for now; wait and retry.
	ClassRate Class = "rate_limit"
	// ClassAllowance: this one call requests more tokens than the account may use in
	// a minute. Waiting does not help; fewer tokens or a higher tier do. The window
	// has nothing to do with it, so it is no overflow.
	ClassAllowance Class = "over_rate_limit"
	// ClassBilling: no credit, or a quota that has to be bought.
	ClassBilling Class = "billing"
	// ClassAuth: the key is missing, wrong, or not allowed to do this.
	ClassAuth Class = "auth"
	// ClassFilter: a content filter refused the input.
	ClassFilter Class = "content_filter"
	// ClassServer: the provider is overloaded or broken; wait and retry.
	ClassServer Class = "server_error"
	// ClassThinking: the request has thinking that is bound to another history than the one
	// before it. A shorter history changes nothing; one without that thinking passes.
	ClassThinking Class = "bound_thinking"
	// ClassInvalid: the request has the wrong form.
	ClassInvalid Class = "invalid_request"
	// ClassUnknown: none of the above was recognized.
	ClassUnknown Class = "unknown"
)

// classInfo has the facts of a class.
type classInfo struct {
	overflow bool
	advice   string      // what to do instead of a compaction
	code     events.Code // of the refusal, "" for [events.CodeNotOverflow]
}

// classes is the one table of classes.
var classes = map[Class]classInfo{
	ClassInput:     {overflow: true},
	ClassSum:       {overflow: true},
	ClassBytes:     {overflow: true},
	ClassMedia:     {overflow: true},
	ClassOutput:    {advice: "send a smaller maximum output"},
	ClassRate:      {advice: "wait, then send the same call"},
	ClassAllowance: {advice: "one call exceeds the allowance of a minute; send fewer tokens or raise the allowance"},
	ClassBilling:   {advice: "the account needs credit or a larger quota"},
	ClassAuth:      {advice: "check the key and its permissions"},
	ClassFilter:    {advice: "a content filter refused the input; change it"},
	ClassServer:    {advice: "wait, then send the same call"},
	ClassThinking:  {advice: "drop thinking from the turns that were made before the history was replaced", code: events.CodeBoundThinking},
	ClassInvalid:   {advice: "the request has the wrong form; correct it"},
	ClassUnknown:   {advice: "its text is unknown"},
}
