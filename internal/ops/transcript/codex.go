package transcript

import (
	"cmp"
	"io"
	"slices"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// codexLine is one line of a rollout of Codex. Source: github.com/openai/codex, codex-rs/rollout,
// codex-rs/protocol and core/src/session/rollout_reconstruction.rs.
type codexLine struct {
	number    int
	payload   codexPayload
	Timestamp time.Time `json:"timestamp"`
	Type      string    `json:"type"`
	Payload   codec.Raw `json:"payload"`
}

// codexPayload has the members that are read of all kinds of lines.
type codexPayload struct {
	Type string `json:"type"`

	ID   string `json:"id"` // of session_meta
	Base struct {
		Text string `json:"text"`
	} `json:"base_instructions"`
	Instructions string `json:"instructions"` // older, of session_meta
	Model        string `json:"model"`        // of turn_context
	Message      string `json:"message"`      // of compacted: its summary

	Role      string `json:"role"` // of an item
	Encrypted string `json:"encrypted_content"`

	Turns int `json:"num_turns"` // of thread_rolled_back
	Info  *struct {
		Last *struct {
			Input  int64 `json:"input_tokens"` // with those of caches
			Cached int64 `json:"cached_input_tokens"`
			Output int64 `json:"output_tokens"`
		} `json:"last_token_usage"`
	} `json:"info"` // of token_count
}

// codex reads one rollout.
type codex struct {
	rec *recording
	id  string

	kinds   []string // of the item of each step, "" of a compaction
	prompts []int    // steps of what the user typed
	open    int      // step of the last item of a response that is not counted yet; -1 without
	counted bool     // the provider's counts end responses
	model   string
}

// parseCodex reads a rollout. Items are those of the Responses API, and go as they are.
func parseCodex(in input, r io.Reader) {
	c := &codex{open: -1, rec: &recording{format: events.Responses}}
	var all []codexLine
	in.eachLine(r, func(n int, data []byte) error {
		l, err := readCodex(n, data)
		if err == nil {
			all = append(all, l)
			c.counted = c.counted || l.count() != nil
		}
		return err
	})
	for _, l := range all {
		if err := c.add(&l); err != nil {
			in.bad(atLine(l.number, err))
		}
	}
	c.rec.name = in.named("codex-" + cmp.Or(c.id, in.stem))
	if c.rec.model.Name == "" {
		c.rec.model = modelNamed(c.model)
	}
	c.rec.put(in)
}

func readCodex(n int, data []byte) (l codexLine, err error) {
	if err := codec.Unmarshal(data, &l); err != nil {
		return l, err
	}
	if l.number = n; l.Payload == nil { // older rollouts have the item alone, and theirs first
		l.Type, l.Payload = "response_item", data
		if n == 1 {
			l.Type = "session_meta"
		}
	}
	return l, codec.Unmarshal(l.Payload, &l.payload)
}

// count is the provider's count for a response, nil if the line has none.
func (l *codexLine) count() *lineUsage {
	if l.payload.Type != "token_count" || l.payload.Info == nil || l.payload.Info.Last == nil {
		return nil
	}
	u := l.payload.Info.Last
	return &lineUsage{Input: u.Input - u.Cached, CacheRead: u.Cached, Output: u.Output}
}

func (c *codex) add(l *codexLine) error {
	switch p := &l.payload; l.Type {
	case "session_meta":
		c.meta(p)
	case "turn_context":
		c.model = cmp.Or(p.Model, c.model)
	case "compacted":
		c.compacted(l.Timestamp, p.Message)
	case "event_msg":
		c.event(l)
	case "inter_agent_communication", "rollout_reference": // of, or in, another rollout
		c.rec.lacks(missingItem, 1)
	case "response_item":
		return c.item(l.Timestamp, p, l.Payload)
	}
	return nil
}

// meta is the first line. The sessions that this one continues have theirs behind it.
func (c *codex) meta(p *codexPayload) {
	if c.id == "" {
		c.id = p.ID
		c.put(step{system: cmp.Or(p.Base.Text, p.Instructions)}, "meta")
	}
}

func (c *codex) put(s step, kind string) {
	c.rec.steps = append(c.rec.steps, s)
	c.kinds = append(c.kinds, kind)
}

// compacted is Codex's own compaction. Its summary is encrypted where it was made by the
// provider; the items it began the new history with were in the old one.
func (c *codex) compacted(at time.Time, summary string) {
	c.close(nil)
	c.put(step{at: at, compaction: true, summary: summary}, "")
	if summary == "" {
		c.rec.lacks(missingCompaction, 1)
	}
}

func (c *codex) event(l *codexLine) {
	switch l.payload.Type {
	case "user_message":
		for i, kind := range slices.Backward(c.kinds) {
			if kind == "user" {
				if !slices.Contains(c.prompts, i) {
					c.prompts = append(c.prompts, i)
				}
				return
			}
		}
	case "thread_rolled_back":
		c.rollBack(l.payload.Turns)
	case "token_count":
		if u := l.count(); u != nil {
			c.close(u)
		}
	}
}

// close ends the response that is open.
func (c *codex) close(u *lineUsage) {
	if c.open < 0 {
		return
	}
	s := &c.rec.steps[c.open]
	s.answer, s.usage, c.open = true, u, -1
}

// rollBack takes the last turns of the user back, with the context that Codex sent before them.
func (c *codex) rollBack(turns int) {
	if turns <= 0 || len(c.prompts) == 0 {
		return
	}
	c.close(nil)
	first := max(len(c.prompts)-turns, 0)
	cut := c.prompts[first]
	for cut > c.prompts[0] && (c.kinds[cut-1] == "developer" || c.kinds[cut-1] == "user") && !slices.Contains(c.prompts, cut-1) {
		cut--
	}
	c.rec.lacks(missingBranch, len(c.prompts)-first)
	c.rec.steps, c.kinds, c.prompts = c.rec.steps[:cut], c.kinds[:cut], c.prompts[:first]
}

// codexItems are the kinds of items that are in a prompt, and whether a model made them.
var codexItems = map[string]bool{
	"message": false, "reasoning": true,
	"function_call": true, "function_call_output": false, "custom_tool_call": true, "custom_tool_call_output": false,
	"local_shell_call": true, "local_shell_call_output": false, "tool_search_call": true, "tool_search_output": false,
	"web_search_call": true, "image_generation_call": true,
}

func (c *codex) item(at time.Time, p *codexPayload, raw codec.Raw) error {
	made, known := codexItems[p.Type]
	made = made || p.Type == "message" && p.Role == "assistant"
	switch {
	case p.Type == "" || p.Type == "ghost_snapshot" || p.Type == "compaction_trigger":
		return nil // a state of an older rollout, or for Codex alone
	case p.Type == "compaction" || p.Type == "compaction_summary" || p.Type == "context_compaction":
		c.compacted(at, "")
		return nil
	case !known:
		c.rec.lacks(missingItem, 1)
		return nil
	case p.Type == "reasoning" && p.Encrypted != "":
		c.rec.lacks(missingReasoning, 1)
	}
	s := step{at: at, messages: []codec.Raw{without(raw, "internal_chat_message_metadata_passthrough")}}
	if _, err := events.Responses.ReadAll(s.messages); err != nil {
		return err
	}
	if !made && (!c.counted || p.Role != "") {
		c.close(nil)
	}
	if made {
		s.model = c.model
		c.open = len(c.rec.steps)
		if c.rec.model.Name == "" {
			c.rec.model = modelNamed(c.model)
		}
	}
	c.put(s, cmp.Or(p.Role, p.Type))
	return nil
}
