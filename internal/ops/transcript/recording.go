package transcript

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// recording is a conversation as it was recorded, in whatever format.
type recording struct {
	name   string
	format events.Format
	model  events.Model // of the first turn
	stated int64        // window, in tokens; 0 where the transcript has none
	tools  codec.Raw    // absent if they were not recorded
	steps  []step
	missing

	system     string
	seenSystem string       // by the turns so far
	seenModel  events.Model // likewise
	pending    []codec.Raw
	compacted  bool
	prompt     int64 // of the last call that the model counted
	restarted  bool  // by a compaction since the last turn
	summary    string
	turns      []Turn
}

// missing counts what the program has not recorded of its prompts, by kind.
type missing map[string]int

// Kinds of what recordings lack.
const (
	missingReasoning  = "encrypted reasoning"
	missingCompaction = "encrypted compaction"
	missingThinking   = "hidden thinking"
	missingMedia      = "image or file"
	missingItem       = "item of an unknown kind"
	missingBranch     = "turn that was taken back"
)

// lacks counts what is missing.
func (m *missing) lacks(kind string, n int) {
	if n == 0 {
		return
	}
	if *m == nil {
		*m = missing{}
	}
	(*m)[kind] += n
}

// step is the growth of a conversation, or a compaction by the recorded agent.
type step struct {
	at         time.Time
	system     string      // prompt; as before if absent
	messages   []codec.Raw // in the dialect of the recording
	answer     bool        // of the model: a turn ends here
	model      string      // as before if absent
	usage      *lineUsage
	compaction bool
	summary    string // the agent's text at its compaction
}

type lineUsage struct {
	Input      int64 `json:"input"`
	CacheWrite int64 `json:"cache_write"`
	CacheRead  int64 `json:"cache_read"`
	Output     int64 `json:"output"`
}

// counted is the count of a provider or an SDK, in its own shape; nil without one.
func counted(raw codec.Raw) *lineUsage {
	u := events.ReadUsage(raw)
	if u == nil {
		return nil
	}
	return &lineUsage{Input: u.Input, CacheWrite: u.CacheCreate, CacheRead: u.CacheRead, Output: u.Output}
}

// prompt is the input with what was cached.
func (u *lineUsage) prompt() int64 { return u.Input + u.CacheRead + u.CacheWrite }

// sane reports whether an event may carry it.
func (u *lineUsage) sane() bool {
	return min(u.Input, u.CacheRead, u.CacheWrite, u.Output) >= 0 && max(u.Input, u.CacheRead, u.CacheWrite, u.Output) <= events.MaxTokens
}

// payload is the wire form of a session.turn.
type payload struct {
	V          int             `json:"v"`
	ID         string          `json:"id"`
	Turn       int64           `json:"turn"`
	Generation int64           `json:"generation"`
	Model      *events.Model   `json:"model,omitzero"`
	Format     events.Format   `json:"format,omitzero"`
	System     string          `json:"system,omitzero"`
	Tools      codec.Raw       `json:"tools,omitzero"`
	Messages   []codec.Raw     `json:"messages"`
	Usage      *anthropicUsage `json:"usage,omitzero"`
}

// anthropicUsage has the fields of lineUsage, under the names of an event.
type anthropicUsage struct {
	Input      int64 `json:"input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

// session cuts the recording into turns.
func (r *recording) session(in input) Session {
	windows := map[string]int64{}
	r.change(windows, r.model)
	for _, s := range r.steps {
		if s.compaction {
			r.compacted, r.restarted, r.summary = true, true, s.summary
			continue
		}
		if validModel(s.model) && s.model != r.model.Name {
			r.change(windows, modelNamed(s.model))
		}
		r.system = cmp.Or(s.system, r.system)
		r.pending = append(r.pending, s.messages...)
		if s.answer {
			r.turn(in, s)
		}
	}
	if len(r.pending) > 0 { // the agent never answered
		r.turn(in, r.steps[len(r.steps)-1])
	}
	return Session{Name: r.name, Format: r.format, Turns: r.turns, Missing: r.missing}
}

// put gives the session to the reader of the file, unless it has nothing.
func (r *recording) put(in input) {
	if s := r.session(in); len(s.Turns) > 0 {
		in.take(s)
	}
}

// change is to another model, whose window is looked up once.
func (r *recording) change(windows map[string]int64, m events.Model) {
	if _, ok := windows[m.Name]; !ok {
		windows[m.Name] = r.window(m)
	}
	r.model = m
	r.model.ContextWindow, r.prompt = windows[m.Name], 0 // another model counts otherwise
}

// turn takes what is pending. A turn that no worker would take is reported and left
// out.
func (r *recording) turn(in input, last step) {
	n := int64(len(r.turns)) + 1
	p := payload{
		V: events.Version, ID: turnID(r.name, n), Turn: n,
		Format: r.format, Messages: r.pending, Usage: r.usage(last),
	}
	r.pending = nil
	if p.Messages == nil {
		p.Messages = []codec.Raw{}
	}
	if r.model != r.seenModel {
		p.Model = &r.model
	}
	if r.system != r.seenSystem {
		p.System = r.system
	}
	if n == 1 {
		p.Tools = r.tools
	}
	data, err := codec.Marshal(p)
	if err == nil && len(data) > events.MaxTurnBytes {
		err = fmt.Errorf("%d messages have %d bytes together, more than a turn may: %d", len(p.Messages), len(data), events.MaxTurnBytes)
	}
	if err != nil {
		in.bad(fmt.Errorf("session %s: turn %d: %w", r.name, n, err))
		return
	}
	t := Turn{ID: p.ID, Number: n, At: last.at, Payload: data, Messages: p.Messages, Restarted: r.restarted, Summary: r.summary}
	if u := last.usage; u != nil && u.sane() {
		t.Input, t.Output = u.prompt(), u.Output
	}
	r.turns = append(r.turns, t)
	r.seenModel, r.seenSystem, r.restarted, r.summary = r.model, r.system, false, ""
}

var turnSpace = uuid.MustParse("0d3c2a3e-5f0c-5b63-9a55-4f4f6d1f7c20")

func turnID(session string, n int64) string {
	return uuid.NewSHA1(turnSpace, fmt.Appendf(nil, "%s\x00%d", session, n)).String()
}

// usage is the usage of an event. A usage is dropped if the stated window cannot take it, since the call had
// another history than the one that is kept within the window. It is dropped too if the prompt shrank: the
// agent has cleared something.
func (r *recording) usage(s step) *anthropicUsage {
	u := s.usage
	if u == nil || r.compacted || *u == (lineUsage{}) || !u.sane() || r.stated > 0 && u.prompt() > r.stated {
		return nil
	}
	if r.compacted = u.prompt() < r.prompt-r.prompt/fallShare; r.compacted {
		return nil
	}
	r.prompt = u.prompt()
	return (*anthropicUsage)(u)
}

// fallShare is the part of a prompt by which the next one may be less: providers leave out thinking.
const fallShare = 10

// object writes an object of names and values in turn, in their order.
func object(members ...any) codec.Raw {
	var out []codec.Member
	for member := range slices.Chunk(members, 2) {
		out = append(out, codec.Member{Name: member[0].(string), Value: must(member[1])})
	}
	return codec.WriteObject(out)
}

// must writes a value whose parts were read from JSON.
func must(v any) codec.Raw {
	data, err := codec.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("transcript: write a message: %v", err)) // its raw parts are valid JSON
	}
	return data
}
