package compaction_test

import (
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

func init() { answers["emergencyContentTruncation"] = answerEmergency }

// emergencyInput is a history with what is available for the whole call.
type emergencyInput struct {
	Messages        []events.Raw
	AvailableTokens measure.Tokens
	Provider        string
	Breakdown       struct{ SystemPrompt, CurrentPrompt, ToolDefinitions, FileAttachments measure.Tokens }
}

// room is what the history may cost, framing included.
func (in *emergencyInput) room() measure.Tokens {
	b := &in.Breakdown
	return in.AvailableTokens - b.SystemPrompt - b.CurrentPrompt - b.ToolDefinitions - b.FileAttachments
}

// answerEmergency cuts contents until they fit beside what else the call holds.
func answerEmergency(c *vectorCase) any {
	var in emergencyInput
	c.into(&in)
	r := c.manner.rate(in.Provider)
	d := compaction.NewDraft(entriesOf(in.Messages), events.NeuroLink, r)
	if target := in.room() - r.PerConversation; d.Tokens() > target {
		d.Trim(target, 0)
	}
	return fields{"messages": (&stageInput{Messages: in.Messages}).rendered(draftView(d, events.NeuroLink))}
}
