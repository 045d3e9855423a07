package overflowtest

import (
	"strings"

	"compactd/internal/events"
)

// Message is the message of an error: a string itself, else its message, with that
// of its cause, else its error, else the message of its error. An empty one is none. ok is false
// when there is none of these.
func Message(err events.Raw) (message string, ok bool) {
	if s, isText := events.Text(err); isText {
		return s, s != ""
	}
	var object map[string]events.Raw
	if err.Kind() != '{' || events.Unmarshal(err, &object) != nil {
		return "", false
	}
	s, _ := events.Text(object["message"])
	if of, hasCause := messageOf(object["cause"]); hasCause {
		s = strings.TrimLeft(s+" "+of, " ")
	}
	if s != "" {
		return s, true
	}
	if s, isText := events.Text(object["error"]); isText {
		return s, s != ""
	}
	return messageOf(object["error"])
}

func messageOf(v events.Raw) (message string, ok bool) {
	var object map[string]events.Raw
	if v.Kind() != '{' || events.Unmarshal(v, &object) != nil {
		return "", false
	}
	s, ok := events.Text(object["message"])
	return s, ok && s != ""
}
