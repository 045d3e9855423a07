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

// Limits on the unread rest of bodies. drainBytes limits one body, and all bodies together per second.
const (
	drainBytes = 64 << 20
	drainTime  = 5 * time.Second
	drainPart  = 256 << 10
)

// Drained reads and discards the rest of a body that next left unread, up to a limit, before the answer begins.
// A client that sends the whole body before it reads would lose the answer if its connection were closed first.
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
	awaited bool // the client waits for 100 Continue before it sends the body
	ended   bool
}

func (d *drain) Read(p []byte) (int, error) {
	d.awaited = false
	n, err := d.ReadCloser.Read(p)
	d.ended = d.ended || err != nil
	return n, err
}

// drained is the answer to such a request. A hijacked connection never calls WriteHeader.
type drained struct {
	http.ResponseWriter
	request *http.Request
	body    *drain
	all     *rate.Limiter // of the bytes of all such bodies
}

// WriteHeader first reads the rest of the body, for at most drainTime.
func (d *drained) WriteHeader(status int) {
	if !d.body.ended && !d.body.awaited {
		c := http.NewResponseController(d.ResponseWriter)
		_ = c.SetReadDeadline(time.Now().Add(drainTime))
		err := d.rest()
		until := time.Now() // the server must not wait for more of the body
		if errors.Is(err, io.EOF) {
			until = time.Time{}
		}
		_ = c.SetReadDeadline(until)
		_ = c.SetWriteDeadline(time.Now().Add(answerTime))
	}
	d.ResponseWriter.WriteHeader(status)
}

// rest reads the body up to a limit. It returns [io.EOF] at the end of the body.
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

// Unwrap lets http.ResponseController set deadlines and hijack the connection.
func (d *drained) Unwrap() http.ResponseWriter { return d.ResponseWriter }
