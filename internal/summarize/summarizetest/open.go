package summarizetest

import (
	"net/http/httptest"
	"sync"
)

// Open serves on 127.0.0.1 until stop is called, for programs that are no tests.
// A nil answer returns "ok".
func Open(answer func(Prompt) string) (s *Server, stop func()) {
	s = newServer(answer)
	h := httptest.NewServer(s)
	s.url = h.URL + "/"
	return s, sync.OnceFunc(func() {
		close(s.done)
		h.CloseClientConnections()
		h.Close()
	})
}
