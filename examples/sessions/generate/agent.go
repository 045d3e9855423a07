package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// model is the one the agents claim to be.
const model = "claude-sonnet-4-20250514"

// line is one message of a transcript; see package transcript.
type line struct {
	Session string  `json:"session"`
	Seq     int     `json:"seq"`
	Source  string  `json:"source"`
	Kind    string  `json:"kind"`
	TS      string  `json:"ts"`
	Role    string  `json:"role"`
	Model   string  `json:"model,omitempty"`
	Content []block `json:"content"`
	Usage   *usage  `json:"usage,omitempty"`
	Meta    *meta   `json:"meta,omitempty"`
}

type block struct {
	Type      string  `json:"type"`
	Text      string  `json:"text,omitempty"`
	ID        string  `json:"id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Input     any     `json:"input,omitempty"`
	ToolUseID string  `json:"tool_use_id,omitempty"`
	Content   *string `json:"content,omitempty"`
	IsError   bool    `json:"is_error,omitempty"`
}

// usage is what the provider counted, in tokens.
type usage struct {
	Input      int `json:"input"`
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"`
	Output     int `json:"output"`
}

type meta struct {
	ContextWindow int `json:"context_window,omitempty"`
}

// box carries out calls. It returns what the tool answers, and whether that is
// an error.
type box interface {
	do(c call) (answer string, failed bool)
}

// agent records what is said. After an error its methods do nothing.
type agent struct {
	scenario scenario
	box      box
	lines    []line
	now      time.Time
	calls    int
	chars    int // said so far
	cached   int // tokens of the last request, without its uncached part
	err      error
}

// perform plays a scenario and returns its transcript.
func perform(s scenario, b box) ([]line, error) {
	a := &agent{scenario: s, box: b, now: s.start}
	s.play(a)
	return a.lines, a.err
}

// user says a text, after a while. In texts, ´ stands for a backquote.
func (a *agent) user(text string) {
	if a.err != nil {
		return
	}
	if len(a.lines) > 0 {
		a.wait(40_000, 150_000)
	}
	a.add(line{Role: "user", Content: []block{{Type: "text", Text: part(dedent(text))}}})
}

// say is one message of the assistant. With calls, the answers follow at once as
// the next message; without any, the user is to speak.
func (a *agent) say(text string, calls ...call) {
	if a.err != nil {
		return
	}
	m := line{Role: "assistant", Model: model}
	if text = part(dedent(text)); text != "" {
		m.Content = append(m.Content, block{Type: "text", Text: text})
	}
	var answers []block
	for _, c := range calls {
		a.calls++
		id := "toolu_01" + a.name("call", a.calls, 22)
		m.Content = append(m.Content, block{Type: "tool_use", ID: id, Name: c.tool, Input: c.input})
		answer, failed := a.box.do(c)
		if failed != c.fails {
			a.err = fmt.Errorf("message %d: %s %s: failed is %t, the script expects %t:\n%s", len(a.lines)+1, c.tool, c.subject, failed, c.fails, answer)
			return
		}
		answers = append(answers, block{Type: "tool_result", ToolUseID: id, Content: &answer, IsError: failed})
	}
	m.Usage = a.usage(m)
	a.wait(900+m.Usage.Output*12, 2_400)
	a.add(m)
	if len(answers) > 0 {
		a.wait(40, 2_600)
		a.add(line{Role: "user", Content: answers})
	}
}

func (a *agent) add(l line) {
	l.Session, l.Seq, l.Source, l.Kind = a.scenario.name, len(a.lines)+1, "example", "message"
	l.TS = a.now.Format("2006-01-02T15:04:05.000Z")
	if l.Seq == 1 && a.scenario.window > 0 {
		l.Meta = &meta{ContextWindow: a.scenario.window}
	}
	a.chars += size(l)
	a.lines = append(a.lines, l)
}

// uncached is the part of a request that stands behind the last cache mark.
const uncached = 4

// usage makes up what a provider would have counted for the request that m
// answers: one token for three characters, as source code has it, and a cache that holds the request before.
func (a *agent) usage(m line) *usage {
	total := a.scenario.overhead + tokens(a.chars)
	u := usage{Input: uncached, CacheRead: a.cached, CacheWrite: total - uncached - a.cached, Output: tokens(size(m)) + 8}
	a.cached = total - uncached
	return &u
}

func tokens(chars int) int { return (chars + 2) / 3 }

// size is the length of a message's texts, calls and answers, in characters.
func size(l line) int {
	n := 0
	for _, b := range l.Content {
		n += utf8.RuneCountInString(b.Text) + len(b.Name)
		if b.Content != nil {
			n += utf8.RuneCountInString(*b.Content)
		}
		if b.Input != nil {
			data, _ := marshal(b.Input) // structs of strings and numbers
			n += utf8.RuneCount(data)
		}
	}
	return n
}

// wait lets time pass: least milliseconds and up to spread more.
func (a *agent) wait(least, spread int) {
	ms := least + int(a.hash("wait", len(a.lines))%uint64(spread))
	a.now = a.now.Add(time.Duration(ms) * time.Millisecond)
}

// hash and name are the agent's only chance: the same in every run.
func (a *agent) hash(what string, n int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", a.scenario.name, what, n))
	return binary.BigEndian.Uint64(sum[:])
}

func (a *agent) name(what string, n, length int) string {
	const digits = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", a.scenario.name, what, n))
	var s strings.Builder
	for _, b := range sum[:length] {
		s.WriteByte(digits[int(b)%len(digits)])
	}
	return s.String()
}

// encode writes a transcript as gzip, without name and time.
func encode(lines []line) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		data, err := marshal(l)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", l.Seq, err)
		}
		if _, err := z.Write(data); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// marshal writes JSON on a line, with < and > as they are.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// dedent takes the indentation of a script's source off a text: the tabs that
// all of its lines begin with, and empty lines around it.
func dedent(s string) string {
	lines := strings.Split(strings.TrimRight(strings.TrimLeft(s, "\n"), "\n\t "), "\n")
	least := -1
	for _, l := range lines {
		if n := len(l) - len(strings.TrimLeft(l, "\t")); strings.TrimSpace(l) != "" && (least < 0 || n < least) {
			least = n
		}
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l[min(max(least, 0), len(l)):], " \t")
	}
	return strings.Join(lines, "\n")
}

// code is the text of a file in a script: its indentation comes off, it ends with
// a newline, and ´ stands for the backquote that Go's raw strings cannot hold.
func code(s string) string { return part(dedent(s)) + "\n" }

// part is a piece of a file, for an edit: as it stands, ´ aside.
func part(s string) string { return strings.ReplaceAll(s, "´", "`") }
