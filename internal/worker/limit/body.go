package limit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

// PerByte is the memory per byte of a body: the byte itself, its decoded form, and its share of the
// published event or the answer.
const PerByte = 3

// Time limits of a body. A client that sends more slowly than leastRate loses its connection.
const (
	firstBytes = 10 * time.Second
	leastRate  = 32 << 10         // bytes a second, after firstBytes
	mostPause  = time.Minute      // without a byte, however fast the others came
	answerTime = 30 * time.Second // from the last byte on
)

// Body limits a body.
type Body struct {
	Most int // bytes; a longer body is a [*http.MaxBytesError]
	// Prefix is put before the body, in the same slice.
	Prefix []byte
	// Fold reads a body longer than Most, and reduces it to at most most bytes. It may be nil.
	Fold func(r io.Reader, most int) ([]byte, error)
	// MostSent limits the bytes that Fold reads.
	MostSent int64
}

// ErrSlow: a client sent its body too slowly.
var ErrSlow = errors.New("the body came too slowly")

// timed is a body that must arrive in time. Only the reads count as the client's time.
type timed struct {
	body     io.Reader
	deadline *http.ResponseController
	read     int64
	took     time.Duration
}

func (t *timed) Read(p []byte) (int, error) {
	began := time.Now()
	left := firstBytes + time.Duration(t.read/leastRate)*time.Second - t.took
	if err := t.deadline.SetReadDeadline(began.Add(min(left, mostPause))); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := t.body.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = ErrSlow
	}
	t.read += int64(n)
	t.took += time.Since(began)
	return n, err
}

// streamed is a timed body that is passed on as it arrives.
type streamed struct {
	timed
	io.Closer
}

// Read removes the deadline at the end of the body: it would end a long answer.
func (s *streamed) Read(p []byte) (int, error) {
	n, err := s.timed.Read(p)
	if errors.Is(err, io.EOF) {
		_ = s.deadline.SetReadDeadline(time.Time{})
	}
	return n, err
}

// TimeBody bounds the time in which the body of a request arrives; a read after it returns [ErrSlow]. It replaces
// the ReadTimeout of the server, which must be set for requests whose body is not read.
func TimeBody(w http.ResponseWriter, r *http.Request) {
	s := &streamed{timed{body: r.Body, deadline: http.NewResponseController(w)}, r.Body}
	if r.ContentLength == 0 {
		_ = s.deadline.SetReadDeadline(time.Time{})
		return
	}
	r.Body = s
}

// ReadBody reads the body of a request. It takes memory for the first [Large] bytes as they arrive,
// then for the rest at once, so that no two bodies wait for each other. Its waits for memory do not
// count as the client's time.
func (o *Operation) ReadBody(ctx context.Context, w http.ResponseWriter, r *http.Request, b Body) ([]byte, error) {
	in := &arriving{timed: timed{deadline: http.NewResponseController(w)}, ctx: ctx, o: o, most: min(r.ContentLength, int64(b.Most))}
	if r.ContentLength < 0 {
		in.most = int64(b.Most)
	}
	data, err := in.all(w, r, b)
	in.end(err)
	return data, err
}

func (a *arriving) all(w http.ResponseWriter, r *http.Request, b Body) ([]byte, error) {
	if b.Fold != nil && (r.ContentLength < 0 || r.ContentLength > int64(b.Most)) {
		a.body = http.MaxBytesReader(w, r.Body, b.MostSent)
		data, err := b.Fold(a, b.Most)
		return append(slices.Clip(b.Prefix), data...), err
	}
	a.body = http.MaxBytesReader(w, r.Body, int64(b.Most))
	return a.readAll(b.Prefix, r.ContentLength)
}

// arriving is a body that is being read.
type arriving struct {
	timed
	ctx  context.Context //nolint:containedctx // a reader's
	o    *Operation
	most int64 // bytes of the whole body

	counted int64
	leases  []lease
}

// readAll reads to the end and returns the prefix and the body.
func (a *arriving) readAll(prefix []byte, length int64) ([]byte, error) {
	first := min(max(length, minRead), Large)
	out := append(make([]byte, 0, int64(len(prefix))+first+minRead), prefix...)
	for {
		if len(out) == cap(out) {
			size := 2 * int64(cap(out))
			if most := int64(len(prefix)) + a.most + minRead; length > 0 || size > most {
				size = max(most, int64(len(out))+minRead)
			}
			out = append(make([]byte, 0, size), out...)
		}
		n, err := a.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// minRead is the smallest buffer for a read.
const minRead = 512

// Read takes memory before it fills it.
func (a *arriving) Read(p []byte) (int, error) {
	if a.read >= a.counted && a.counted < a.most {
		if err := a.count(); err != nil {
			return 0, err
		}
	}
	if a.counted < a.most {
		p = p[:min(int64(len(p)), a.counted-a.read)]
	}
	return a.timed.Read(p)
}

// firstPart is the number of bytes counted before a body arrives.
const firstPart = 4 << 10

// count takes the memory for the next bytes.
func (a *arriving) count() error {
	next := min(max(2*a.counted, firstPart), a.most)
	if next > Large {
		next = a.most
	}
	n := (next - a.counted) * PerByte
	if a.o == nil {
		a.counted = next
		return nil
	}
	if next > Large { // a waiting body must hold no memory: two could wait for each other
		a.release()
		n = next * PerByte
	}
	got, err := a.o.limiter.pools[Memory].take(a.ctx, a.o.of, n)
	if err != nil {
		return err
	}
	a.leases = append(a.leases, got)
	a.counted = next
	return nil
}

func (a *arriving) release() {
	for i := range a.leases {
		a.leases[i].release()
	}
	a.leases = a.leases[:0]
}

// end passes the memory of the body to the operation. After an error it does not wait for the rest
// of the body.
func (a *arriving) end(err error) {
	until := time.Time{} // a deadline would end a long answer
	if err != nil {
		until = time.Now()
	}
	_ = a.deadline.SetReadDeadline(until)
	_ = a.deadline.SetWriteDeadline(time.Now().Add(answerTime))
	if a.o == nil {
		return
	}
	if err != nil {
		a.release()
		return
	}
	left := a.read * PerByte
	for i := range a.leases {
		l := &a.leases[i]
		l.shrink(min(left, l.n))
		left -= l.n
	}
	a.o.memory = append(a.o.memory, a.leases...)
}
