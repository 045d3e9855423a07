package client

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

type raw = codec.Raw

// sum identifies a history by its content.
type sum [sha256.Size]byte

// encoded is JSON on one line, which [encode] does not change.
type encoded codec.Raw

// modelCall is a history that is about to be sent, as the provider gets it.
type modelCall struct {
	session  string
	branch   string
	config   Config
	format   events.Format
	messages []raw
	rest     int  // bytes of instructions and tools
	dry      bool // nothing is recorded

	sums  []sum // of the content of the first n messages, by n: marks of a cache move
	setup sum   // of model, instructions and tools
}

func newModelCall(session, branch string, config Config, messages []raw) (*modelCall, error) {
	set, err := config.settings()
	if err != nil {
		return nil, err
	}
	c := &modelCall{
		session: session, branch: branch, config: config, format: set.dialect(), messages: messages,
		rest: len(set.System) + len(set.Tools),
		sums: []sum{sha256.Sum256([]byte(set.dialect()))}, setup: sha256.Sum256(bytes.Join([][]byte{[]byte(config.Model.Name), set.System, set.Tools}, []byte{0})),
	}
	for i := range messages {
		digest := c.format.DigestOf(messages[i : i+1])
		c.sums = append(c.sums, sha256.Sum256(slices.Concat(c.sums[i][:], digest[:])))
	}
	return c, nil
}

// sync is the request to a worker, after the last answer; nil for none.
func (c *modelCall) sync(last *record) Sync {
	in := Sync{Config: c.config, Branch: c.branch, DryRun: c.dry}
	for _, m := range c.messages {
		in.Messages = append(in.Messages, encoded(m))
	}
	if last != nil {
		in.Last = last.synced
	}
	return in
}

// of is a message in its sent form.
func (c *modelCall) of(p piece) raw {
	if p.message != nil {
		return p.message
	}
	return c.messages[p.own]
}

// size is the weight of the sent pieces.
func (c *modelCall) size(pieces []piece) int {
	n := c.rest
	for _, p := range pieces {
		n += weight(c.of(p)) + 1
	}
	return n
}

// mediumWeight is what an image, a sound or a document counts, in bytes: about a thousand tokens.
const mediumWeight = 4 << 10

// weight is the size of a message in the window, in bytes; media count mediumWeight each.
func weight(m raw) int {
	n := len(m)
	if n <= mediumWeight {
		return n
	}
	for s := range bytes.SplitSeq(m, []byte{'"'}) { // strings, and the text between them
		if len(s) > mediumWeight && isMedium(s) {
			n -= len(s) - mediumWeight
		}
	}
	return n
}

// isMedium reports whether a string is base64, also after the head of a data URL.
func isMedium(s []byte) bool {
	if head, data, found := bytes.Cut(s, []byte{','}); found && bytes.HasPrefix(head, []byte("data:")) {
		s = data
	}
	return !slices.ContainsFunc(s, func(b byte) bool { return !isBase64[b] })
}

// isBase64 has the bytes of base64, in both alphabets.
var isBase64 = func() (is [256]bool) {
	for _, b := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=") {
		is[b] = true
	}
	return is
}()

func (c *modelCall) equal(a, b []piece) bool {
	return slices.EqualFunc(a, b, func(a, b piece) bool { return bytes.Equal(c.of(a), c.of(b)) })
}

// kept appends the caller's own messages of a range.
func kept(to []piece, from, until int) []piece {
	for i := from; i < until; i++ {
		to = append(to, piece{own: i})
	}
	return to
}

// extend lists the messages to send for a longer history: the same for the messages that s covers, and the
// later ones unchanged.
func (s *Synced) extend(messages int) []piece {
	if !s.Changed {
		return kept(nil, 0, messages)
	}
	var out []piece
	for _, p := range s.parts {
		switch {
		case p.Keep != nil:
			out = kept(out, int(p.Keep[0]), int(p.Keep[1]))
		case p.Edit != nil:
			out = append(out, piece{int(*p.Edit), p.Message})
		case p.Message != nil:
			out = append(out, piece{-1, p.Message})
		}
	}
	return kept(out, s.of, messages)
}

// cut returns the instructions, the first prompt, and the newest turns. If these exceed most bytes, the
// oldest are left out until half of the room is free: later calls append to the same messages, and the
// provider's cache holds. If no whole turn fits, the history continues at a call.
func (c *modelCall) cut(pieces []piece, most int) []piece {
	read := make([]dialect.Message, len(pieces))
	upTo := make([]int, len(pieces)+1) // bytes of the first n pieces
	for i, p := range pieces {
		m, err := c.format.Read(c.of(p))
		if err != nil {
			return pieces
		}
		read[i], upTo[i+1] = m, upTo[i]+weight(c.of(p))+1
	}
	head := slices.IndexFunc(read, events.IsPrompt) + 1
	prompts, all := starts(read, head)
	from, room := head, most-c.rest-upTo[head]
	for end := range upTo { // a longer history begins with the cuts of a shorter one
		if end > from && upTo[end]-upTo[from] > room {
			from = next(prompts, all, upTo[:end+1], from, room)
		}
	}
	return c.bound(slices.Concat(pieces[:head], pieces[from:]))
}

// next is the place at which a history continues that exceeds the room: the oldest place after from with half
// of the room free, else one where it fits, else the newest.
func next(prompts, all, upTo []int, from, room int) int {
	end := len(upTo) - 1
	for _, places := range [][]int{prompts, all} {
		for _, most := range []int{room / 2, room} {
			fits := func(i int) bool { return i > from && i < end && upTo[end]-upTo[i] <= most }
			if at := slices.IndexFunc(places, fits); at >= 0 {
				return places[at]
			}
		}
	}
	for _, i := range slices.Backward(all) {
		if i < end {
			return max(from, i)
		}
	}
	return from
}

// starts lists the places at which a history may continue after its head: prompts, and all places without an
// open call.
func starts(read []dialect.Message, head int) (prompts, all []int) {
	open := map[string]bool{}
	for i, m := range read {
		answers := slices.ContainsFunc(m.Parts, func(p dialect.Part) bool { return p.Kind == dialect.PartResult })
		if i >= head && len(open) == 0 && !answers && (i == 0 || !isReasoning(read[i-1])) {
			all = append(all, i)
			if events.IsPrompt(m) {
				prompts = append(prompts, i)
			}
		}
		for _, p := range m.Parts {
			switch p.Kind {
			case dialect.PartCall:
				open[p.CallID] = true
			case dialect.PartResult:
				delete(open, p.CallID)
			}
		}
	}
	return prompts, all
}

// isReasoning reports whether a message is an item of reasoning, which belongs to the next one.
func isReasoning(m dialect.Message) bool {
	return len(m.Parts) > 0 && !slices.ContainsFunc(m.Parts, func(p dialect.Part) bool { return p.Kind != dialect.PartThinking })
}

// bound removes thinking that the model accepts only after the history it was made under. An unknown model
// keeps that of its open tool loop.
func (c *modelCall) bound(pieces []piece) (out []piece) {
	m := events.Model{Provider: c.config.Model.Provider, Name: c.config.Model.Name}
	if !c.format.BindsThinking(m) {
		return pieces
	}
	loop := len(pieces)
	for i, p := range pieces {
		if c.format.MayBind(m) && c.format.HasPrompt([]raw{c.of(p)}) {
			loop = i
		}
	}
	for _, p := range pieces[:loop] {
		for _, left := range c.format.WithoutThinking([]raw{c.of(p)}) {
			if !bytes.Equal(left, c.of(p)) {
				p.message = left
			}
			out = append(out, p)
		}
	}
	return append(out, pieces[loop:]...)
}
