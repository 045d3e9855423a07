package compaction_test

import (
	"compactd/internal/compaction"
	"compactd/internal/events"
)

func init() { answers["emergencyContentTruncation"] = answerEmergency }

// answerEmergency cuts contents until they fit.
func answerEmergency(c *vectorCase) any {
	var in struct {
		Messages        []events.Raw
		AvailableTokens compaction.Tokens
		Provider        string
	}
	c.into(&in)
	r := c.manner.rate(in.Provider)
	d := compaction.NewDraft(entriesOf(in.Messages), events.NeuroLink, r)
	if target := in.AvailableTokens - r.PerConversation; d.Tokens() > target {
		d.Trim(target, 0)
	}
	return fields{"messages": (&stageInput{Messages: in.Messages}).rendered(d.View())}
}
