package limit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// dripping gives its bytes some at a time, with pauses, and ends with a time-out after the deadline.
type dripping struct {
	http.ResponseWriter
	left, each int
	pause      time.Duration
	deadline   time.Time
}

func (d *dripping) SetReadDeadline(t time.Time) error { d.deadline = t; return nil }
func (d *dripping) Close() error                      { return nil }

func (d *dripping) Read(p []byte) (int, error) {
	if time.Sleep(d.pause); time.Now().After(d.deadline) {
		return 0, &timeout{}
	}
	n := min(d.each, d.left, len(p))
	if d.left -= n; n == 0 {
		return 0, io.EOF
	}
	copy(p, bytes.Repeat([]byte{'x'}, n))
	return n, nil
}

type timeout struct{}

func (*timeout) Error() string { return "time-out" }
func (*timeout) Is(err error) bool {
	return err.Error() == "i/o timeout"
}

// Bodies that drip take the memory of the bytes that came, and end. Other bodies arrive meanwhile.
func TestDrippingBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Memory: 16 << 20})
		ended := make(chan error, 100)
		for range cap(ended) {
			go func() {
				d := &dripping{ResponseWriter: httptest.NewRecorder(), left: 32 << 20, each: 1, pause: time.Second}
				o := l.Begin(Account{"hostile", "token"})
				defer o.End()
				_, err := o.ReadBody(t.Context(), d, &http.Request{Body: d, ContentLength: -1}, Body{Most: 32 << 20})
				ended <- err
			}()
		}
		time.Sleep(5 * time.Second)
		if held := l.Held(Memory); held > int64(cap(ended))*firstPart*PerByte {
			t.Errorf("%d bytes are held for %d bytes that came", held, 5*cap(ended))
		}
		d := &dripping{ResponseWriter: httptest.NewRecorder(), left: 2 << 20, each: 64 << 10}
		o := l.Begin(Account{"other", "token"})
		if body, err := o.ReadBody(t.Context(), d, &http.Request{Body: d, ContentLength: 2 << 20}, Body{Most: 32 << 20}); err != nil || len(body) != 2<<20 {
			t.Errorf("of another tenant: %d bytes, %v", len(body), err)
		}
		o.End()
		for range cap(ended) {
			if err := <-ended; !errors.Is(err, ErrSlow) {
				t.Errorf("a body of one byte a second: %v", err)
			}
		}
		if held := l.Held(Memory); held != 0 {
			t.Errorf("%d bytes are held at the end", held)
		}
	})
}

// A client that sends its whole body before it reads gets the answer, also one that is refused meanwhile.
func TestRefusedBodyIsAnswered(t *testing.T) {
	l := New(Config{Memory: 16 << 20})
	release, _ := l.TryHold(Memory, Account{"acme", "other"}, 8<<20)
	defer release()
	server := httptest.NewServer(Drained(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeoutCause(r.Context(), time.Millisecond, ErrBusy)
		defer cancel()
		o := l.Begin(Account{"acme", "token"})
		defer o.End()
		_, err := o.ReadBody(ctx, w, r, Body{Most: 32 << 20})
		if !errors.Is(err, ErrBusy) {
			t.Errorf("%v", err)
		}
		if held := l.Held(Memory); held != 8<<20 {
			t.Errorf("%d bytes are held for a body that is refused", held-8<<20)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})))
	defer server.Close()
	for range 5 {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", 30<<20, strings.Repeat("x", 30<<20))
		if err != nil {
			t.Fatalf("the body is not sent: %v", err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("%v, %v", resp, err)
		}
		c.Close()
	}
}

// Bodies that are larger together than their tenant's share wait for each other, and all arrive;
// the memory counts until the operation ends.
func TestBodiesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Memory: 16 << 20})
		ended := make(chan error, 14)
		for i := range cap(ended) {
			go func() {
				length := int64(1 << 20)
				if i%3 == 0 {
					length = -1
				}
				d := &dripping{ResponseWriter: httptest.NewRecorder(), left: 1 << 20, each: 32 << 10, pause: time.Millisecond}
				o := l.Begin(Account{"acme", "token"})
				body, err := o.ReadBody(t.Context(), d, &http.Request{Body: d, ContentLength: length}, Body{Most: 2 << 20, Prefix: []byte("{")})
				if err == nil && (len(body) != 1<<20+1 || body[0] != '{' || body[1] != 'x') {
					err = errors.New("another body")
				}
				if held := l.Held(Memory); held < PerByte<<20 || held > 8<<20 {
					t.Errorf("%d bytes are held by bodies that are there", held)
				}
				time.Sleep(time.Second)
				o.End()
				ended <- err
			}()
		}
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if held := l.Held(Memory); held != 0 {
			t.Errorf("%d bytes are held at the end", held)
		}
	})
}
