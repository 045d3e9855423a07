package transcript

import (
	"cmp"
	"io"
	"slices"
	"time"

	"compactd/internal/events/codec"
)

// copilotEvent is one line of events.jsonl of Copilot CLI. Source: github.com/github/copilot-sdk,
// nodejs/src/generated/session-events.ts of 2026-08-21. Kinds that are not read below are for
// its interface.
type copilotEvent struct {
	Type      string      `json:"type"`
	ID        string      `json:"id"`
	Agent     string      `json:"agentId"` // of a sub-agent
	Timestamp time.Time   `json:"timestamp"`
	Data      copilotData `json:"data"`
}

type copilotData struct {
	SessionID string `json:"sessionId"`
	NewModel  string `json:"newModel"`
	Selected  string `json:"selectedModel"`
	Model     string `json:"model"`
	Content   string `json:"content"`
	Sent      string `json:"transformedContent"` // the part of a user's message that went to the model
	Parent    string `json:"parentToolCallId"`   // of an older sub-agent

	CallOfAPI string           `json:"apiCallId"` // the parts of one answer share it
	Requests  []copilotRequest `json:"toolRequests"`
	Reasoning string           `json:"reasoningText"`
	Opaque    string           `json:"reasoningOpaque"`
	Encrypted string           `json:"encryptedContent"`

	CallID  string `json:"toolCallId"`
	Success *bool  `json:"success"`
	Result  struct {
		Content string `json:"content"`
	} `json:"result"`
	Error codec.Raw `json:"error"` // of a call it has a message

	Summary string `json:"summaryContent"` // of a compaction
	UpTo    string `json:"upToEventId"`    // of a rewind: that event went too
}

type copilotRequest struct {
	ID        string    `json:"toolCallId"`
	Name      string    `json:"name"`
	Arguments codec.Raw `json:"arguments"`
}

// parseCopilot reads the events of a session, and as sessions of their own those of its
// sub-agents and what came after its user cleared it.
func parseCopilot(in input, r io.Reader) {
	var all []copilotEvent
	rewound := 0
	eachValue(in, r, func(_ int, e *copilotEvent) error {
		if e.Type != "session.snapshot_rewind" {
			all = append(all, *e)
			return nil
		}
		if i := slices.IndexFunc(all, func(x copilotEvent) bool { return x.ID == e.Data.UpTo }); i >= 0 {
			for _, x := range all[i:] {
				if x.Type == "assistant.message" {
					rewound++
				}
			}
			all = all[:i]
		}
		return nil
	})
	c := &copilot{name: "copilot-" + in.stem, agents: map[string]*copilotAgent{}}
	for _, e := range all {
		c.add(&e)
	}
	for i, a := range c.order {
		if i == 0 {
			a.lacks(missingBranch, rewound)
		}
		a.put(in)
	}
}

// copilot has the sorted events of a file.
type copilot struct {
	name, model string
	agents      map[string]*copilotAgent // by id; "" is the session's own
	order       []*copilotAgent
}

// copilotAgent is one conversation.
type copilotAgent struct {
	dialogue
	call string // of the API, that the last answer is of
}

func (c *copilot) agent(id string) *copilotAgent {
	a := c.agents[id]
	if a == nil {
		a = &copilotAgent{dialogue: dialogue{name: c.name, absent: "The tool was not executed."}}
		if id != "" {
			a.name += "-" + id
		}
		c.agents[id] = a
		c.order = append(c.order, a)
	}
	return a
}

func (c *copilot) add(e *copilotEvent) {
	d := &e.Data
	switch e.Type {
	case "session.start":
		if d.SessionID != "" {
			c.name = "copilot-" + d.SessionID
		}
		c.model = cmp.Or(d.Selected, c.model)
	case "session.model_change":
		c.model = cmp.Or(d.NewModel, c.model)
	case "session.context_cleared":
		delete(c.agents, "")
	case "system.message", "user.message", "assistant.message", "tool.execution_complete", "session.compaction_complete", "session.truncation":
		c.agent(cmp.Or(e.Agent, d.Parent)).add(e, cmp.Or(d.Model, c.model))
	}
}

func (a *copilotAgent) add(e *copilotEvent, model string) {
	switch d := &e.Data; e.Type {
	case "system.message":
		a.system = cmp.Or(a.system, d.Content)
	case "user.message":
		a.user(e.Timestamp, texts(cmp.Or(d.Sent, d.Content))...)
	case "assistant.message":
		a.answered(e, model)
	case "tool.execution_complete":
		failed := d.Success != nil && !*d.Success
		a.result(e.Timestamp, d.CallID, cmp.Or(d.Result.Content, codec.String(codec.Get(d.Error, "message"))), failed)
	case "session.compaction_complete":
		if d.Success != nil && *d.Success {
			a.compaction(e.Timestamp, d.Summary)
		}
	case "session.truncation":
		a.compaction(e.Timestamp, "")
	}
}

// answered takes an answer, or the next part of one.
func (a *copilotAgent) answered(e *copilotEvent, model string) {
	d := &e.Data
	if d.Opaque != "" || d.Encrypted != "" {
		a.lacks(missingReasoning, 1)
	}
	var blocks []block
	if d.Reasoning != "" {
		blocks = append(blocks, thinkingBlock(d.Reasoning, ""))
	}
	blocks = append(blocks, texts(d.Content)...)
	for _, r := range d.Requests {
		blocks = append(blocks, callBlock(r.ID, r.Name, r.Arguments))
	}
	if d.CallOfAPI != "" && d.CallOfAPI == a.call && a.more(e.Timestamp, nil, blocks...) {
		return
	}
	a.call = d.CallOfAPI
	a.answer(e.Timestamp, model, nil, blocks...)
}
