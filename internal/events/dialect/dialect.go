package dialect

import (
	"errors"
	"fmt"
	"slices"

	"compactd/internal/events/codec"
	"compactd/internal/events/weigh"
)

// Dialect describes one dialect: the reading and writing of its messages, and the form of its histories.
// Package validate has the rules of a valid history.
type Dialect struct {
	Name  string // on the wire
	Roles string // of its messages, for people

	// Call and Result describe a call or a result without its id, as the end of a sentence about a message.
	// If ids are optional they are "".
	Call, Result string

	// Exchange is the beginning of an exchange: an assistant's calls with their results, and everything up to
	// the next one.
	Exchange Exchange
	// UserFirst: a history begins with a user.
	UserFirst bool
	// Joined selects the neighbours of one role that become one message.
	Joined Joined
	// Strict: no text is blank, and results come first in their message.
	Strict bool
	// Apart: a message of results has nothing else.
	Apart bool
	// Units: an exchange is never cut, nor are its calls and words: see responses.go.
	Units bool
	// SystemByModel: only some models take the system's messages within a conversation.
	SystemByModel bool
	// Results is the role of a message of results that compactd makes.
	Results Role
	// Paired: calls and results belong together by their ids, which no two calls of an exchange
	// share.
	Paired bool
	// HostedPairs: a call of a tool that the provider carries out, and its result, are refused
	// without each other.
	HostedPairs bool
	// Anonymous: a call may be without the name of its tool.
	Anonymous bool

	// roles are the roles of its messages by their names.
	roles map[string]Role
	// blocks is the member of a message whose elements are the blocks of calls and results; "" where
	// these are not in one.
	blocks string

	read func(*Dialect, *Reader) (Message, error)
	// inPlace: an edit only replaces the text that was read.
	inPlace bool
	// append writes a message behind out. ms are the members of its Raw, nil without.
	append func(out codec.Raw, m *Message) (codec.Raw, error)
}

// Exchange is a way to divide a history.
type Exchange uint8

// The ways to divide a history.
const (
	ByRun     Exchange = iota // an exchange begins at an assistant's message behind another role
	ByMessage                 // at each of the assistant's messages
	ByWords                   // as ByRun, and at each of the assistant's words without a call
)

// Joined selects the neighbours of one role that become one message.
type Joined uint8

// Which neighbours become one message.
const (
	JoinNone  Joined = iota
	JoinTools        // those of the assistant, and results
	JoinAll          // those of the user too: roles alternate
)

// all are the dialects, in the order in which they are named.
var all = []*Dialect{&openai, &anthropic, &neurolink, &responses, &gemini, &bedrock, &aiSDK}

// All lists the dialects, not to be changed.
func All() []*Dialect { return all }

// Of returns the dialect of a name, nil for none.
func Of[S ~string | []byte](name S) *Dialect {
	for _, d := range all {
		if d.Name == string(name) {
			return d
		}
	}
	return nil
}

// Defects of a message, as the end of a sentence about it.
var (
	ErrNoMessage = errors.New("is not a JSON object")
	ErrNoRole    = errors.New("has no role that its dialect has")
	ErrNoContent = errors.New("has no content of a type that its dialect allows")
	ErrBadCalls  = errors.New("has tool calls that are not an array of objects")
)

// Read reads the message at w, an object. Its Raw is for the caller to set.
func (d *Dialect) Read(w *Reader) (Message, error) {
	w.odd, w.pin, w.unknown, w.unknownKey, w.extra = false, false, nil, nil, weigh.Size{}
	m, err := d.read(d, w)
	if m.Odd, m.Pinned = w.odd, w.pin; err == nil && !m.Hidden {
		w.withUnknown(d, &m)
	}
	return m, err
}

// Append builds a message from its parts behind what out holds, with all other members of
// its Raw in their order. One that is not Edited has all parts that were read, some of them
// edited. The error: the parts do not make a message of the dialect, a defect of the caller.
func (d *Dialect) Append(out codec.Raw, m *Message) (codec.Raw, error) {
	if d.inPlace && !m.Edited && m.Raw != nil {
		if out, ok := m.splice(out); ok {
			return out, nil
		}
	}
	if d != &openai && slices.ContainsFunc(m.Parts, isAside) { // its member is in Raw
		content := *m
		content.Parts = slices.DeleteFunc(slices.Clone(m.Parts), isAside)
		m = &content
	}
	out, err := d.append(out, m)
	if err != nil {
		return nil, fmt.Errorf("write %s message: %w", d.Name, err)
	}
	return out, nil
}

// appendMembers is an append by the members of a message.
func appendMembers(write func(Message, []codec.Member) ([]codec.Member, error)) func(codec.Raw, *Message) (codec.Raw, error) {
	return func(out codec.Raw, m *Message) (codec.Raw, error) {
		var ms []codec.Member
		var err error
		if m.Raw != nil {
			if ms, err = codec.ReadObject(m.Raw); err != nil {
				return nil, err
			}
		}
		if ms, err = write(*m, ms); err != nil {
			return nil, err
		}
		return codec.AppendObject(out, ms), nil
	}
}
