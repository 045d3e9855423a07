package events

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the stable name of a problem. It crosses the wire beside a text for
// people; programs act on the code.
type Code string

// Every code compactd sends. The table below describes them.
const (
	CodeBadJSON         Code = "bad_json"
	CodeTrailingData    Code = "trailing_data"
	CodeDuplicateKey    Code = "duplicate_key"
	CodeBadType         Code = "bad_type"
	CodeOutOfRange      Code = "out_of_range"
	CodeMissingField    Code = "missing_field"
	CodeBadVersion      Code = "bad_version"
	CodeUnknownKind     Code = "unknown_kind"
	CodeUnsupportedKind Code = "unsupported_kind"
	CodeBadID           Code = "bad_id"
	CodeTooLarge        Code = "too_large"
	CodeTooManyMessages Code = "too_many_messages"
	CodeUnknownFormat   Code = "unknown_format"
	CodeFormatChanged   Code = "format_changed"
	CodeBadMessage      Code = "bad_message"
	CodeForeignDialect  Code = "foreign_dialect"
	CodeMissingCallID   Code = "missing_call_id"
	CodeBadPolicy       Code = "bad_policy"
	CodePolicyLocked    Code = "policy_locked"
	CodeOutcomesLimit   Code = "outcomes_limit"
	CodeInvalidHistory  Code = "invalid_history"
	CodeTurnConflict    Code = "turn_conflict"
	CodeStaleBase       Code = "stale_base"
	CodeTurnGap         Code = "turn_gap"
	CodeTooManyParked   Code = "too_many_parked"
	CodeTooManyEdits    Code = "too_many_edits"
	CodeTooMuchWork     Code = "too_much_work"
	CodeUsageUnknown    Code = "usage_unknown"
	CodeUnknownModel    Code = "unknown_model"
	CodeInternal        Code = "internal"
	CodeSessionReset    Code = "session_reset"

	CodeNotEnoughMessages Code = "not_enough_messages"
	CodeNothingToDo       Code = "nothing_to_do"
	CodeNewerGeneration   Code = "newer_generation"

	CodeUnknownSession     Code = "unknown_session"
	CodeUnknownGeneration  Code = "unknown_generation"
	CodeUnknownTurn        Code = "unknown_turn"
	CodeTurnPending        Code = "turn_pending"
	CodeIncompleteResponse Code = "incomplete_response"
	CodeAborted            Code = "aborted"
	CodeBudgetExceeded     Code = "budget_exceeded"
	CodeNotOverflow        Code = "not_overflow"
	CodeTargetUnreached    Code = "target_unreached"

	CodeOtherHistory    Code = "other_history"
	CodeDiverged        Code = "diverged"
	CodeEditedView      Code = "edited_view"
	CodeUnstableHistory Code = "unstable_history"
	CodeLate            Code = "late"
	CodeUsageUnbound    Code = "usage_unbound"
	CodeWindowRaised    Code = "window_raised"
	CodeRefusedUnbound  Code = "refused_unbound"
	CodeBoundThinking   Code = "bound_thinking"
	CodeMessagesDropped Code = "messages_dropped"
)

// CodeInfo describes a code to people.
type CodeInfo struct {
	// Rejects: the event was not taken. It changed nothing, and a turn
	// did not use its number.
	Rejects bool
	// Meaning is one sentence; Hint the next step.
	Meaning, Hint string
}

// Codes is the one table of codes.
var Codes = map[Code]CodeInfo{
	CodeBadJSON:         {true, "The payload is not one JSON object.", "Send one UTF-8 JSON object per event."},
	CodeTrailingData:    {true, "Data follows the JSON object.", "Send one JSON object per event, nothing after it."},
	CodeDuplicateKey:    {true, "A key of the envelope occurs twice.", "Send each key once; keys inside messages are not checked."},
	CodeBadType:         {true, "A field has the wrong JSON type.", "See docs/format/wire.md for the type of each field."},
	CodeOutOfRange:      {true, "A number is negative, beyond its bound, or names a turn that cannot be replaced yet.", "See docs/format/wire.md for the range of each field."},
	CodeMissingField:    {true, "A required field is absent or empty.", "See docs/format/wire.md for the required fields."},
	CodeBadVersion:      {true, "The field v names a version of the contract that this worker does not support.", "Send v 1, or update the worker."},
	CodeUnknownKind:     {true, "The subject names a kind of event that this worker does not support.", "Publish on session.<kind>.<tenant>.<session> with a kind of the wire contract."},
	CodeUnsupportedKind: {true, "This worker does not act on this kind of event yet.", "Update the worker; the event stays in the log."},
	CodeBadID:           {true, "A tenant is not 1 to 64, or a session not 1 to 352, of A-Z a-z 0-9 _ -.", "Use an id of that alphabet in the subject."},
	CodeTooLarge:        {true, "The event exceeds its size limit.", "Send less per turn; a turn is at most 4 MiB."},
	CodeTooManyMessages: {true, "The turn has more messages, or contents in them, than a turn may have.", "Send at most 4,096 messages with 16,384 contents a turn: a longer history as several turns, or to compactd.sync, which divides it."},
	CodeUnknownFormat:   {true, "The field format names no known dialect.", "Use openai, openai-responses, anthropic, gemini, bedrock, ai-sdk or neurolink."},
	CodeFormatChanged:   {true, "The dialect changed in the middle of a history.", "Send the whole history again with replaces_from 1."},
	CodeBadMessage:      {true, "A message does not have the shape of its dialect.", "Check format, and the message at the index that the text names."},
	CodeForeignDialect:  {true, "A message belongs to another dialect than that of the session and would be misread; the text names it.", "Set format to the dialect that the text names, with replaces_from 1 if the session has turns; or convert the messages."},
	CodeMissingCallID:   {true, "A tool call or a tool result has no id, so that they cannot be paired.", "Send the ids as the provider gave them: id and tool_call_id in openai, id and tool_use_id in anthropic. Messages without ids are of the dialect neurolink."},
	CodeBadPolicy:       {true, "The field policy is not a valid policy.", "See docs/format/policy.md for the settings."},
	CodePolicyLocked:    {false, "The operator has locked fields of the policy; what the session sent for them is ignored.", "Leave the fields out, or have the operator unlock them."},
	CodeInvalidHistory:  {false, "A defect of the worker made a history that is not valid for its provider; it is not given out.", "Go on with the history that you hold, and report it: a later compaction takes its place."},
	CodeOutcomesLimit:   {false, "The compactions of this tenant have filled what it may have stored for now; this one is published without its messages.", "Request the history from compactd.context. Fewer rewinds and compactions by hand, or a higher bound of the operator, bring messages back."},
	CodeTurnConflict:    {true, "A turn of this number with other content was taken before.", "Continue with the next number, or withdraw the old turns with replaces_from."},
	CodeStaleBase:       {true, "The session is not at the base that the turn expects: other turns came before it.", "Send the whole history to compactd.sync, or compute the turn again from the session as it is."},
	CodeTurnGap:         {false, "Turns are missing before this one; it is parked until they come.", "Send the turn named in expected, or resync with replaces_from."},
	CodeTooManyParked:   {true, "64 turns wait for a missing one already.", "Resync with replaces_from."},
	CodeTooManyEdits:    {true, "The session was rewound and compacted by hand so often that its edits are many times its messages.", "Send the whole history again with replaces_from 1."},
	CodeTooMuchWork:     {true, "Rewinds and compactions by hand exceed the work of an hour.", "Send it again later: the work of an hour flows off with the time."},
	CodeUsageUnknown:    {false, "The usage could not be read; the turn counts without it.", "Send usage as the provider or the SDK gave it for the last call; docs/format/wire.md lists the shapes that are read."},
	CodeUnknownModel:    {false, "No table has the model, so that its window is a guess.", "Correct model.provider and model.name, state model.context_window, or have the operator add the window under windows; docs/format/policy.md has the table."},
	CodeInternal:        {true, "A defect of the worker kept it from handling this event.", "Report it with the sequence; the session goes on without the event."},

	CodeSessionReset: {true, "The worker can no longer use its state of this session; the session begins again, at generation 0.", "Send the whole history again with replaces_from 1."},

	CodeNotEnoughMessages: {false, "The history is too short to be reduced.", "Send shorter messages, or use a model with a larger window."},
	CodeNothingToDo:       {false, "Nothing would make the history smaller: it is within its target, or the rest is protected, too new, or compacted already. After a rewind: that generation is in view.", "Go on: compactd tries again when the history has grown. To remove more now, send session.compact with a policy that has a lower target or protects less."},

	CodeNewerGeneration: {false, "The call was made with an older generation; the newest fits, and was published before.", "Apply the generation that this answer names, and call again: its messages are in its own session.compacted, or in the answer to context."},

	CodeUnknownSession:     {true, "The session has no turns.", "Publish a turn first, under the same tenant and session."},
	CodeUnknownGeneration:  {true, "The session has no such generation to return to.", "Name a generation from 0 to the one before the last; generation 0 is the history as it was published."},
	CodeUnknownTurn:        {true, "The session has no such turn, or the turn no such message.", "Name a turn from 1 to the last one taken, and a message of it, counted from 0."},
	CodeTurnPending:        {true, "The turn that the request waits for was not decided in time.", "Try again. If it was acknowledged, the worker is behind. A turn that was never published, or whose session has ended, is never decided."},
	CodeIncompleteResponse: {false, "The summarizer gave no usable summary.", "Try again, with another focus or model; the session goes on as it was."},
	CodeAborted:            {false, "The request has become obsolete: turns were retracted, or another request took its place.", "Request it again if it is still wanted."},
	CodeBudgetExceeded:     {false, "No stage could make the next call fit.", "Shorten the system prompt, the tools or the last messages, see budget.breakdown, or use a model with a larger window."},
	CodeTargetUnreached:    {false, "The history is above the target of its compaction: no more may be removed.", "Go on, the next call fits. Shorten the system prompt, the tools or the last messages, see budget.breakdown, or raise target."},
	CodeBoundThinking:      {true, "The provider refused thinking that is bound to another history than the one before it; a shorter history would not solve that.", "Drop thinking and redacted_thinking from your own turns that were made under an older generation, or before system prompt or tools changed, and send the call again; see bound_thinking in docs/format/wire.md."},
	CodeOtherHistory:       {true, "The first messages of history and session differ, and on_diverge is refuse.", "Send the history again with on_diverge auto, replace or branch, or give the conversation a session of its own."},
	CodeDiverged:           {true, "The history differs from the session's, and on_diverge is refuse.", "Send the history again with on_diverge auto, replace or branch."},
	CodeEditedView:         {false, "The history has messages of compactd that were changed; it went into a branch, since the originals are behind them.", "Keep your own history, and apply the parts to it for each call; or go on, the answer names the branch."},
	CodeUnstableHistory:    {false, "A message of the history changes with each request; nothing is published until it stays the same, and the history is fitted by itself.", "Send the named message with the same members each time; times and ids belong in members that are not content."},
	CodeLate:               {false, "The turn was not decided in time; the answer rests on what was decided before.", "Go on. A larger wait_ms waits longer."},
	CodeMessagesDropped:    {false, "Messages without any content, or that the provider would refuse, are not sent.", "Leave them out of the history, or give them content that the dialect defines."},
	CodeUsageUnbound:       {false, "The usage was counted for another view than the last one, or for another number of messages, and is ignored.", "Send usage with the view of the answer that the call was made with, and as count the messages of that call. Leave out the usage of any other call."},
	CodeRefusedUnbound:     {false, "The refused view does not belong to this history; the refusal is ignored.", "Send refused with the view of the answer that the call was made with; send it again if the next call is refused."},
	CodeWindowRaised:       {false, "The provider took an input above the window that is known of the model; the session's window is as large as that input until a refusal shows otherwise.", "State the window of the model in model.context_window, or in the worker's table of windows."},
	CodeNotOverflow:        {true, "A shorter history would not solve the error; the text names its class.", "Do what the text says; see docs/format/wire.md for the classes."},
}

// Problem is one thing wrong with an event.
type Problem struct {
	Code  Code
	Field string // path within the envelope, such as model.max_output_tokens
	Text  string // the defect, without any content of a message
}

// String returns the field and its defect.
func (p Problem) String() string {
	if p.Field == "" {
		return p.Text
	}
	return p.Field + " " + p.Text
}

// Invalid lists every problem of an event.
type Invalid struct{ Problems []Problem }

// Error joins the problems.
func (e *Invalid) Error() string {
	s := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		s[i] = p.String()
	}
	return strings.Join(s, "; ")
}

// Code is the code of the first problem, the one that is sent.
func (e *Invalid) Code() Code { return e.Problems[0].Code }

// Hint is the next step for the first problem.
func (e *Invalid) Hint() string { return Codes[e.Code()].Hint }

// CodeOf returns the code of the [*ServiceError] or the [*Invalid] in err's chain, [CodeInternal] for any other
// error and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*ServiceError](err); ok {
		return e.Code
	}
	if e, ok := errors.AsType[*Invalid](err); ok {
		return e.Code()
	}
	return CodeInternal
}

// NewInvalid returns an [*Invalid] with one problem.
func NewInvalid(c Code, field, text string) *Invalid {
	return &Invalid{Problems: []Problem{{c, field, text}}}
}

// problems collects the defects of one event.
type problems []Problem

// maxProblems bounds the problems that are listed for one event.
const maxProblems = 16

func (p *problems) add(c Code, field, format string, args ...any) {
	if len(*p) < maxProblems {
		*p = append(*p, Problem{c, field, fmt.Sprintf(format, args...)})
	}
}

// join takes over the problems of err, which is nil or an *Invalid.
func (p *problems) join(err error) {
	if e, ok := errors.AsType[*Invalid](err); ok {
		*p = append(*p, e.Problems...)
	}
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &Invalid{Problems: p}
}

func invalidf(c Code, field, format string, args ...any) *Invalid {
	return NewInvalid(c, field, fmt.Sprintf(format, args...))
}
