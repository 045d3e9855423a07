package limit

import (
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Clients that are refused in a row are slowed together; where too many wait, their connections end.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := NewRefusals(), time.Now()
		var clients sync.WaitGroup
		for range 40 {
			clients.Go(func() {
				for range 100 {
					w := httptest.NewRecorder()
					if r.Await(t.Context(), w); w.Header().Get("Connection") != "" {
						t.Error("a connection ends")
					}
				}
			})
		}
		clients.Wait()
		if got := time.Since(began); got < 2990*time.Millisecond {
			t.Errorf("4,000 were refused within %v", got)
		}
		ended := make(chan bool, 6*refusalsPerSecond)
		for range cap(ended) {
			clients.Go(func() {
				w := httptest.NewRecorder()
				r.Await(t.Context(), w)
				ended <- w.Header().Get("Connection") == "close"
			})
		}
		clients.Wait()
		close(ended)
		n := 0
		for e := range ended {
			if e {
				n++
			}
		}
		if n < refusalsPerSecond-10 || n > refusalsPerSecond+10 {
			t.Errorf("%d connections end", n)
		}
	})
}
