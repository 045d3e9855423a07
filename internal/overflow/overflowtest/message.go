package overflowtest

import (
	"strings"

	"compactd/internal/events/codec"
)

// Message is the message of an error: a string itself, else its message, with that
// of its cause, else its error, else the message of its error. An empty one is none. ok is false
// when there is none of these.
func Message(err codec.Raw) (message string, ok bool) {
	if s, isText := codec.Text(err); isText {
		return s, s != ""
	}
	var object map[string]codec.Raw
	if err.Kind() != '{' || codec.Unmarshal(err, &object) != nil {
		return "", false
	}
	s, _ := codec.Text(object["message"])
	if of, hasCause := messageOf(object["cause"]); hasCause {
		s = strings.TrimLeft(s+" "+of, " ")
	}
	if s != "" {
		return s, true
	}
	if s, isText := codec.Text(object["error"]); isText {
		return s, s != ""
	}
	return messageOf(object["error"])
}

func messageOf(v codec.Raw) (message string, ok bool) {
	var object map[string]codec.Raw
	if v.Kind() != '{' || codec.Unmarshal(v, &object) != nil {
		return "", false
	}
	s, ok := codec.Text(object["message"])
	return s, ok && s != ""
}
