package client

import (
	"errors"
	"fmt"
	"strings"

	"compactd/internal/events"
)

// Code is the stable name of a problem; docs/format/wire.md lists all of them. It
// matches errors: errors.Is(err, client.CodeNotOverflow).
type Code string

// Codes that an agent may want to act on.
const (
	CodeTurnConflict       Code = "turn_conflict"         // another agent has published this turn
	CodeTurnGap            Code = "turn_gap"              // turns before it are missing
	CodeSessionReset       Code = "session_reset"         // the worker lost the session; it was sent again
	CodeBadMessage         Code = "bad_message"           // a message is not of its dialect
	CodeForeignDialect     Code = "foreign_dialect"       // a message is of another dialect, which the text names
	CodeBadPolicy          Code = "bad_policy"            // a setting of Config.Policy
	CodeTooLarge           Code = "too_large"             // above 4 MiB, or the limit of the server
	CodeTooManyMessages    Code = "too_many_messages"     // more than a turn may have
	CodeFormatChanged      Code = "format_changed"        // a session keeps its dialect, see Turn.ReplacesFrom
	CodeOutOfRange         Code = "out_of_range"          // a number that names nothing
	CodeNotOverflow        Code = "not_overflow"          // a shorter history would not help
	CodeBudgetExceeded     Code = "budget_exceeded"       // nothing more can be taken away
	CodeNotEnoughMessages  Code = "not_enough_messages"   // too short to be reduced
	CodeNothingToDo        Code = "nothing_to_do"         // nothing would make it smaller
	CodeNewerGeneration    Code = "newer_generation"      // the call was made with an older one
	CodeAborted            Code = "aborted"               // another request took its place
	CodeIncompleteResponse Code = "incomplete_response"   // the summarizer gave no summary
	CodeUnknownSession     Code = "unknown_session"       // it has no turns
	CodeUnknownTurn        Code = "unknown_turn"          // no such turn or message
	CodeTurnPending        Code = "turn_pending"          // a turn was not applied in time
	CodeUnknownGeneration  Code = "unknown_generation"    // no such generation
	CodeUnavailable        Code = "unavailable"           // no worker can answer now
	CodeUnauthorized       Code = "unauthorized"          // the token is missing or wrong
	CodeForbidden          Code = "forbidden"             // the token is of another tenant or role
	CodeGone               Code = "gone"                  // no longer in the log
	CodeUnacknowledged     Code = "client_unacknowledged" // sent, and no answer came in time
	CodeDuplicateID        Code = "client_duplicate_id"   // another client copies message ids; nothing was stored
	CodeClosed             Code = "client_closed"         // the session was closed
	CodeForgotten          Code = "client_forgotten"      // an operator has erased the session
	CodeCut                Code = "client_cut"            // no worker answered, and the oldest turns were left out
	CodeCodec              Code = "client_codec"          // a message could not be converted; the agent's own history was sent
)

// Error makes a Code something that errors.Is finds.
func (c Code) Error() string { return string(c) }

// Error is a refusal, by a worker or before anything was sent.
type Error struct {
	Code Code
	// Turn that was refused; 0 when it was something else. It and those after it are
	// no longer part of the session: publish them again, corrected, or leave them.
	Turn int64
	// Message describes the problem, Hint the next step. Neither quotes a conversation.
	Message, Hint string
}

// Error returns the message and the hint.
func (e *Error) Error() string {
	text := string(e.Code) + ": " + e.Message
	if e.Turn > 0 {
		text = fmt.Sprintf("turn %d was refused: %s", e.Turn, text)
	}
	if e.Hint != "" {
		text = strings.TrimSuffix(text, ".") + ". " + e.Hint // both are sentences
	}
	return text
}

// Is makes errors.Is find the code.
func (e *Error) Is(target error) bool { return target == e.Code }

func newError(c Code, message, hint string) *Error {
	return &Error{Code: c, Message: message, Hint: hint}
}

// typed turns an error of package events into an [*Error].
func typed(err error) error {
	if bad, ok := errors.AsType[*events.Invalid](err); ok {
		return newError(Code(bad.Code()), bad.Error(), bad.Hint())
	}
	if refused, ok := errors.AsType[*events.ServiceError](err); ok {
		return newError(Code(refused.Code), refused.Message, refused.Hint)
	}
	return err
}
