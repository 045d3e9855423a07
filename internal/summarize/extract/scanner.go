package extract

import (
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/lazyregexp"
	"compactd/internal/summarize"
	"compactd/internal/summarize/snippet"
)

// scanner pairs calls with their results while a digest is made.
type scanner struct {
	*Digest
	calls []call
	byID  map[string]int
	next  int              // calls before it have their results, or will get none by order
	ended bool             // the last part was a result: the next call begins another exchange
	open  map[string][]int // failures by the key of their call, until it succeeds
}

// tools reads the calls and results of a message.
func (s *scanner) tools(m *summarize.Message) {
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case dialect.PartCall:
			if s.ended {
				s.next, s.ended = len(s.calls), false
			}
			s.call(p, m.Turn)
		case dialect.PartResult:
			s.ended = true
			s.result(p, m.Turn)
		}
	}
}

// shellBlock is the command of an agent without tools, and observed what begins the message
// with its output, as mini-swe-agent has them.
var (
	shellBlock = lazyregexp.New("(?s)```(?:mswea_bash_command|bash|sh|shell)[ \\t]*\\r?\\n(.*?)\\n```")
	observed   = lazyregexp.New(`^\s*<(?:returncode>(-?\d+)</returncode|output|observation)>`)
)

// block reads the single command in an assistant's words, whose output is the next message.
func (s *scanner) block(m, next *summarize.Message) {
	if m.Role != dialect.RoleAssistant || next.Role != dialect.RoleUser || len(next.Parts) == 0 || next.Parts[0].Kind != dialect.PartText {
		return
	}
	code := observed().FindStringSubmatch(next.Parts[0].Text)
	var blocks [][]string
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case dialect.PartCall:
			return
		case dialect.PartText:
			blocks = append(blocks, shellBlock().FindAllStringSubmatch(p.Text, 2)...)
		}
	}
	if code == nil || len(blocks) != 1 {
		return
	}
	args := codec.WriteObject([]codec.Member{{Name: "command", Value: codec.Quote(blocks[0][1])}})
	s.next, s.ended = len(s.calls), false
	s.call(&dialect.Part{Kind: dialect.PartCall, Tool: "bash", Args: args}, m.Turn)
	s.result(&dialect.Part{Kind: dialect.PartResult, Text: next.Parts[0].Text, Failed: code[1] != "" && code[1] != "0"}, next.Turn)
	s.ended = true
}

// call notes a call and its facts before a result.
func (s *scanner) call(p *dialect.Part, turn int64) {
	c := readCall(p, turn)
	n := len(s.calls)
	s.calls = append(s.calls, c)
	if p.CallID != "" {
		s.byID[p.CallID] = n
	}
	if c.list != nil {
		s.list(c.list, turn)
	}
	for _, id := range c.idents {
		s.ident(id, turn)
	}
	if _, command, ok := strings.Cut(c.key, "\x00"); ok && c.shell {
		s.identify(snippet.Head(command, snippet.MaxScanned), turn)
	}
	if s.called = append(s.called, Line{Text: c.head, Turns: [2]int64{turn, turn}}); len(s.called) > maxWork {
		s.called = s.called[1:]
	}
}

// result closes the call that a result answers: by id, else the oldest open one.
func (s *scanner) result(p *dialect.Part, turn int64) {
	c := s.answered(p.CallID)
	if isPlaceholder(p.Text) {
		if c != nil {
			s.count(c, true)
		}
		return
	}
	text, bad := failed(p, c)
	if c == nil {
		if bad && text != "" {
			s.failures = append(s.failures, failure{Line: Line{Text: text, Turns: [2]int64{turn, turn}}})
		}
		return
	}
	s.count(c, !p.Failed)
	if bad {
		text := strings.TrimSuffix(c.head+": "+text, ": ")
		s.open[c.key] = append(s.open[c.key], len(s.failures))
		s.failures = append(s.failures, failure{Line{Text: text, Turns: [2]int64{c.turn, turn}}, c.key})
		delete(s.succeeded, c.head)
		return
	}
	for _, i := range s.open[c.key] {
		s.failures[i].fixed = true
	}
	delete(s.open, c.key)
	if c.named {
		s.succeeded[c.head] = true
	}
	if c.commit {
		s.identify(snippet.Head(p.Text, lineUnits), turn)
	}
}

// answered takes the call with an id, or the oldest that waits.
func (s *scanner) answered(id string) *call {
	n, ok := s.byID[id]
	if id != "" && !ok {
		return nil
	}
	delete(s.byID, id)
	for s.next < len(s.calls) && s.calls[s.next].done {
		s.next++
	}
	if id == "" {
		n = s.next
	}
	if n == len(s.calls) {
		return nil
	}
	s.calls[n].done = true
	return &s.calls[n]
}

// count notes the files of a call; of a failed one, those that it certainly used.
func (s *scanner) count(c *call, done bool) {
	for _, u := range c.uses {
		if done || u.Certain {
			s.use(u, c.turn)
		}
	}
}

// finish counts calls whose results are not in the range.
func (s *scanner) finish() {
	for i := range s.calls {
		if !s.calls[i].done {
			s.count(&s.calls[i], true)
		}
	}
}
