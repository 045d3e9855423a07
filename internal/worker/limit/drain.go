package limit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of reading a body that no handler reads to its end: of each, and of all at once and a second.
const (
	drainBytes = 64 << 20
	drainTime  = 5 * time.Second
	drainPart  = 256 << 10
)

// Drained reads what next left of a body before the answer begins, up to a bound, and keeps nothing of it: a
// client that sends all before it reads loses the answer when its connection is closed meanwhile.
func Drained(next http.Handler) http.Handler {
	all := rate.NewLimiter(drainBytes, drainBytes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			body := &drain{ReadCloser: r.Body, awaited: strings.EqualFold(r.Header.Get("Expect"), "100-continue")}
			copied := *r
			copied.Body = body
			w, r = &drained{ResponseWriter: w, request: r, body: body, all: all}, &copied
		}
		next.ServeHTTP(w, r)
	})
}

// drain is the body of a request.
type drain struct {
	io.ReadCloser
	awaited bool // its client sends nothing before it is read
	ended   bool
}

func (d *drain) Read(p []byte) (int, error) {
	d.awaited = false
	n, err := d.ReadCloser.Read(p)
	d.ended = d.ended || err != nil
	return n, err
}

// drained is the answer to such a request. A connection that was taken over has none.
type drained struct {
	http.ResponseWriter
	request *http.Request
	body    *drain
	all     *rate.Limiter // of the bytes of all such bodies
}

// WriteHeader reads the rest of the body, unless the client was too slow with it.
func (d *drained) WriteHeader(status int) {
	if !d.body.ended && !d.body.awaited {
		c := http.NewResponseController(d.ResponseWriter)
		_ = c.SetReadDeadline(time.Now().Add(drainTime))
		err := d.rest()
		until := time.Now() // the server waits for no more of it
		if errors.Is(err, io.EOF) {
			until = time.Time{}
		}
		_ = c.SetReadDeadline(until)
		_ = c.SetWriteDeadline(time.Now().Add(answerTime))
	}
	d.ResponseWriter.WriteHeader(status)
}

// rest reads the body to its end, whose error is [io.EOF], or up to a bound.
func (d *drained) rest() error {
	ctx, cancel := context.WithTimeout(d.request.Context(), drainTime)
	defer cancel()
	for range drainBytes / drainPart {
		n, err := io.CopyN(io.Discard, d.body, drainPart)
		if err == nil {
			err = d.all.WaitN(ctx, int(n))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Unwrap lets the controller of the response set deadlines, and take over the connection.
func (d *drained) Unwrap() http.ResponseWriter { return d.ResponseWriter }
