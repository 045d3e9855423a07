package exchanges

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// section is one part of a file: what one side sends or should receive.
type section struct {
	name, text string
	number     int // in the file, from 1
}

func (s section) String() string { return fmt.Sprintf("section %d, %s", s.number, s.name) }

// step is a request of an agent, with all that follows from it.
type step struct {
	request section   // or fit, refused, used
	restart bool      // the adapter has lost its memory
	events  []section // sync, answer, provider, responds, chunk, in their order
	results []section // response, fitted, problems, compacted
}

// script is a file.
type script struct {
	shows   string
	options string
	steps   []step
}

var kinds = map[string]bool{
	"sync": true, "answer": true, "provider": true, "responds": true, "chunk": true, "cut": true,
	"response": false, "fitted": false, "problems": false, "compacted": false,
}

// beginnings are sections that begin a step.
var beginnings = map[string]bool{"request": true, "fit": true, "refused": true, "used": true}

// read reads a file.
func read(path string) (*script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	a := txtar.Parse(data)
	s := &script{shows: strings.TrimSpace(string(a.Comment))}
	restart := false
	for i, f := range a.Files {
		sec := section{f.Name, string(f.Data), i + 1}
		during, known := kinds[f.Name]
		switch {
		case f.Name == "options":
			s.options = sec.text
		case f.Name == "restart":
			restart = true
		case beginnings[f.Name]:
			s.steps = append(s.steps, step{request: sec, restart: restart})
			restart = false
		case !known || len(s.steps) == 0:
			return nil, fmt.Errorf("%s: %s is not expected here", path, sec)
		case during:
			last := &s.steps[len(s.steps)-1]
			last.events = append(last.events, sec)
		default:
			last := &s.steps[len(s.steps)-1]
			last.results = append(last.results, sec)
		}
	}
	if s.shows == "" || len(s.steps) == 0 {
		return nil, fmt.Errorf("%s has no sentence or no request", path)
	}
	return s, nil
}

// result returns a result of the step.
func (s *step) result(name string) (section, bool) {
	for _, r := range s.results {
		if r.name == name {
			return r, true
		}
	}
	return section{name: name}, false
}

// message is a section with a head: a first line, headers, and a body behind an empty line.
type message struct {
	first  string
	header http.Header
	body   string
}

func (s section) message() message {
	head, body, _ := strings.Cut(s.text, "\n\n")
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	m := message{lines[0], http.Header{"Content-Type": {"application/json"}}, trim(body)}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		m.header.Set(name, value)
	}
	return m
}

func (m message) status() int {
	n, _ := strconv.Atoi(m.first)
	return n
}

// trim removes the end of the last line, which belongs to the file.
func trim(text string) string { return strings.TrimSuffix(text, "\n") }
