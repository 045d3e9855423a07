package transport

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"compactd/internal/events/codec"
)

// Bounds of what is read before the caller reads, and of one line of a stream.
const (
	mostHeld = 64 << 10
	mostJSON = 4 << 20
	mostLine = 1 << 20
)

// answer is the body of a response. Its bytes pass unchanged; it reads the usage in them, and a refusal in
// place of content.
type answer struct {
	io.ReadCloser
	status int
	stream bool
	held   []byte // read, and not yet by the caller
	err    error  // after the held bytes
	gunzip *gunzip
	decode func([]byte) // takes the text of the next bytes; nil if not needed

	text    []byte // of a plain answer, or of a line, as far as read
	counts  []codec.Member
	content bool      // of a stream, or its refusal, has come
	refusal codec.Raw // nil for none
	usage   func(any) // takes the counts; nil before watch
}

// tooLong has the words of refusals for length under statuses of others, which go to no worker.
var tooLong = map[int]string{
	http.StatusTooManyRequests:     "Extra usage is required for ",       // of Anthropic: an account may send less than the model takes
	http.StatusInternalServerError: "exceeds the available context size", // of older versions of llama.cpp
}

// inspect reads the beginning of a response: a refusal, a whole plain answer, or a stream up to its first
// content.
func inspect(r *http.Response) *answer {
	a := &answer{ReadCloser: r.Body, status: r.StatusCode}
	r.Body = a
	switch r.Header.Get("Content-Encoding") {
	case "", "identity":
		a.decode = a.read
	case "gzip":
		a.gunzip = newGunzip(a.read)
		a.decode = a.gunzip.feed
	default: // which the request did not accept
		return a
	}
	switch r.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		a.hold(mostHeld)
		a.refusal = append(codec.Raw{}, a.text...)
	case http.StatusTooManyRequests, http.StatusInternalServerError:
		if a.hold(mostHeld); bytes.Contains(a.text, []byte(tooLong[r.StatusCode])) {
			a.refusal = append(codec.Raw{}, a.text...)
		}
	case http.StatusOK:
		if a.stream = strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream"); a.stream {
			a.hold(mostHeld)
			a.status = 0 // that of a refusal
			return a
		}
		a.hold(mostJSON)
		a.count(a.text)
	}
	a.decode, a.text = nil, nil
	return a
}

// refused is the refusal as [client.Fitted] takes it.
func (a *answer) refused() any {
	if a.refusal == nil {
		return nil
	}
	return []byte(a.refusal)
}

// hold reads up to the first content of a stream, the end, or about most bytes.
func (a *answer) hold(most int) {
	for a.err == nil && !a.content && len(a.held) < most {
		var n int
		a.held = slices.Grow(a.held, 4<<10)
		n, a.err = a.fill(a.held[len(a.held):cap(a.held)])
		a.held = a.held[:len(a.held)+n]
	}
}

// Read returns the held bytes, then the rest.
func (a *answer) Read(p []byte) (int, error) {
	if len(a.held) > 0 {
		n := copy(p, a.held)
		a.held = a.held[n:]
		return n, nil
	}
	if a.err != nil {
		return 0, a.err
	}
	return a.fill(p)
}

// Close also ends the decompression.
func (a *answer) Close() error {
	if a.gunzip != nil {
		a.gunzip.end()
	}
	return a.ReadCloser.Close()
}

func (a *answer) fill(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if a.decode != nil {
		a.decode(p[:n])
	}
	return n, err
}

// read reads the next part of the text.
func (a *answer) read(p []byte) {
	if !a.stream {
		a.text = append(a.text, p[:min(len(p), mostJSON-len(a.text))]...)
		return
	}
	for part := range bytes.Lines(p) {
		a.text = append(a.text, part[:min(len(part), mostLine-len(a.text))]...)
		if part[len(part)-1] == '\n' {
			if data, ok := bytes.CutPrefix(a.text, []byte("data:")); ok {
				a.event(bytes.TrimSpace(data))
			}
			a.text = a.text[:0]
		}
	}
}

// event reads an event of a stream.
func (a *answer) event(data codec.Raw) {
	if !a.content {
		event, err := codec.ReadObject(data)
		if isError(event) {
			a.refusal = bytes.Clone(data)
		}
		a.content = a.refusal != nil || err != nil || !isPreamble(event)
	}
	if bytes.Contains(data, []byte(`"usage"`)) {
		a.count(data)
	}
}

// count adds the usage in an answer or an event to that of earlier events.
func (a *answer) count(data codec.Raw) {
	if codec.Check(data) != nil {
		return
	}
	ms, _ := codec.ReadObject(data)
	for _, inner := range []string{"response", "message"} {
		if of, err := codec.ReadObject(codec.Lookup(ms, inner)); err == nil {
			ms = of
		}
	}
	added, _ := codec.ReadObject(codec.Lookup(ms, "usage"))
	for _, m := range added {
		a.counts = codec.SetMember(a.counts, m.Name, bytes.Clone(m.Value))
	}
	a.report()
}

// watch passes the usage on, once it is read.
func (a *answer) watch(usage func(any)) {
	a.usage = usage
	a.report()
}

func (a *answer) report() {
	if a.usage != nil && a.counts != nil {
		a.usage(json.RawMessage(codec.WriteObject(a.counts)))
	}
}

// isError reports whether an event is the error of a provider.
func isError(event []codec.Member) bool {
	kind := codec.String(codec.Lookup(event, "type"))
	return kind == "error" || kind == "response.failed" || kind == "" && codec.IsSet(codec.Lookup(event, "error"))
}

// isPreamble reports whether an event comes before content: an error may still follow it.
func isPreamble(event []codec.Member) bool {
	switch codec.String(codec.Lookup(event, "type")) {
	case "response.created", "response.in_progress", "response.queued", "message_start", "ping":
		return true
	case "":
		choices, err := codec.ReadArray(codec.Lookup(event, "choices"))
		return err == nil && !slices.ContainsFunc(choices, hasContent)
	}
	return false
}

// hasContent reports whether a choice of chat completions has more than the role.
func hasContent(choice codec.Raw) bool {
	delta, _ := codec.ReadObject(codec.Get(choice, "delta"))
	return codec.IsSet(codec.Get(choice, "finish_reason")) || slices.ContainsFunc(delta, func(m codec.Member) bool {
		return m.Name != "role" && codec.IsSet(m.Value) && string(m.Value) != `""`
	})
}
