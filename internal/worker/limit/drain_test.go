package limit

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// zeros is a body without an end.
type zeros struct{ read atomic.Int64 }

func (z *zeros) Read(p []byte) (int, error) {
	z.read.Add(int64(len(p)))
	return len(p), nil
}

// Bodies of refused requests are read at a bounded rate, those of all clients together.
func TestDrainedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var body zeros
		h := Drained(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
		began := time.Now()
		var clients sync.WaitGroup
		for range 20 {
			clients.Go(func() {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", io.NopCloser(&body)))
			})
		}
		clients.Wait()
		most := drainBytes + int64(time.Since(began).Seconds()*drainBytes) + 20*drainPart
		if got := body.read.Load(); got < drainBytes || got > most {
			t.Errorf("%d bytes were read, at most %d may be", got, most)
		}
	})
}
