package payload

import (
	"fmt"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
)

// InvalidError reports a history that is not valid for its provider: a defect of this program. It
// quotes no content.
type InvalidError struct{ Violations []validate.Violation }

// Error describes the first violation, and their number.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("the history is not valid for its provider: %s; %d violations in all", e.Violations[0], len(e.Violations))
}

// check returns an [*InvalidError] for a history that is not valid for its provider, unless the agent's own
// messages cause each violation. A message that alone is invalid is kept unchanged. A history with a
// message of a bad shape is not checked further.
func check(v *render.View, history []codec.Raw, texts map[measure.Seq][]dialect.Message) error {
	if len(history) == 0 {
		return nil // such as a session whose first turn is parked, which has no format yet
	}
	call := validate.Call{Format: string(v.Format), Demands: v.Demands, Messages: history}
	bad := validate.Check(call)
	if len(bad) == 0 {
		return nil
	}
	own := ownBreaches(call, texts)
	if bad = slices.DeleteFunc(bad, func(v validate.Violation) bool { return own[v.Rule] }); len(bad) == 0 || own["bad_shape"] {
		return nil
	}
	return &InvalidError{bad}
}

// ofOne are the rules that a single message can break: no repair rewrites such a message. Its content
// stays in the message that it is merged into.
var ofOne = []string{"bad_shape", "empty_text", "empty_content", "document_text", "reasoning_absent", "final_thinking"}

// ownBreaches returns the rules that single messages of the agent break.
func ownBreaches(call validate.Call, texts map[measure.Seq][]dialect.Message) map[string]bool {
	own := map[string]bool{}
	for _, turn := range texts {
		for _, m := range turn {
			if m.Raw == nil {
				continue
			}
			call.Messages = []codec.Raw{m.Raw}
			for _, v := range validate.Check(call) {
				if slices.Contains(ofOne, v.Rule) {
					own[v.Rule] = true
				}
			}
		}
	}
	return own
}
