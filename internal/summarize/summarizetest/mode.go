package summarizetest

import (
	"bytes"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Mode is how a call is answered.
type Mode string

// The modes.
const (
	Good          Mode = "good"
	Slow          Mode = "slow"           // good, after Delay
	Hang          Mode = "hang"           // no byte, ever
	Drip          Mode = "drip"           // a good answer, a byte a second
	RateLimited   Mode = "429"            // with Retry-After, or what the provider has instead
	ServerError   Mode = "500"            //
	Reset         Mode = "reset"          // the connection ends before the answer begins
	CutBody       Mode = "cut body"       // and here in its middle
	CutJSON       Mode = "cut JSON"       // whole for HTTP, half for JSON
	Foreign       Mode = "foreign"        // a page of HTML with status 200
	EmptyBody     Mode = "empty body"     // not one byte, with status 200
	Empty         Mode = "empty"          // a good answer without text
	Length        Mode = "finish=length"  // cut by the bound on output
	ToolCall      Mode = "tool call"      // of a tool that no caller offered
	Refusal       Mode = "refusal"        // the model declines
	PromptRefused Mode = "prompt refused" // a filter declines before the model
	Endless       Mode = "endless body"   //
	Redirect      Mode = "redirect"       // into the server's own /elsewhere
	TooLong       Mode = "prompt too long"
	BadKey        Mode = "bad key"
	NoModel       Mode = "no such model"
)

// Modes are all modes, the good one first.
func Modes() []Mode {
	return []Mode{
		Good, Slow, Hang, Drip, RateLimited, ServerError, Reset, CutBody, CutJSON, Foreign, EmptyBody, Empty,
		Length, ToolCall, Refusal, PromptRefused, Endless, Redirect, TooLong, BadKey, NoModel,
	}
}

// behave answers p. A refusal quotes key and prompt, as a hostile provider may.
func (s *Server) behave(w http.ResponseWriter, r *http.Request, m Mode, p Prompt) {
	switch m {
	case Slow:
		if s.wait(r, s.Delay) {
			s.writeAnswer(w, p, m)
		}
	case Hang:
		s.wait(r, forever)
	case Drip:
		s.drip(w, r, s.reply(p, m))
	case Reset:
		hangUp(w, "")
	case CutBody:
		b := s.reply(p, m)
		hangUp(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(b))+"\r\n\r\n"+string(b[:len(b)/2]))
	case CutJSON:
		b := s.reply(p, m)
		send(w, http.StatusOK, b[:len(b)/2])
	case Foreign:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>key " + p.Key + " prompt " + p.User + "</html>"))
	case EmptyBody:
		send(w, http.StatusOK, nil)
	case Endless:
		s.endless(w, r, s.reply(p, m))
	case Redirect:
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	case RateLimited, ServerError, TooLong, BadKey, NoModel:
		s.refuse(w, m, p)
	case PromptRefused:
		if p.Dialect == Google { // which declines with status 200
			s.writeAnswer(w, p, m)
		} else {
			s.refuse(w, m, p)
		}
	default:
		s.writeAnswer(w, p, m)
	}
}

// forever outlasts every time-out.
const forever = 1_000 * time.Hour

// wait reports whether d went by with the caller still there.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	case <-s.done:
		return false
	}
}

func (s *Server) drip(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	for i := range body {
		if _, err := w.Write(body[i : i+1]); err != nil || http.NewResponseController(w).Flush() != nil || !s.wait(r, time.Second) {
			return
		}
	}
}

// endless begins a good answer and never ends it.
func (s *Server) endless(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	chunk := bytes.Repeat([]byte(" "), 64<<10)
	copy(chunk, body[:1])
	for r.Context().Err() == nil {
		n, err := w.Write(chunk)
		s.written.Add(int64(n))
		if err != nil {
			return
		}
		chunk[0] = ' '
	}
}

// hangUp writes raw bytes and ends the connection, without a closing message where it
// can: a peer sees a reset.
func hangUp(w http.ResponseWriter, raw string) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = c.Write([]byte(raw))
	if tcp, ok := c.(*net.TCPConn); ok && raw == "" {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
