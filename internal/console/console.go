package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed assets
var assets embed.FS

// policy is what the page may load and do: nothing but its own files, and requests to where it comes from.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// index is the file that / is.
const index = "index.html"

// kinds are the content types of files, by the end of the name.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

// Page is the files as they are served.
type Page struct{ files func() map[string]*file }

// New returns the page. Its files are compressed when one is requested first.
func New() *Page { return &Page{sync.OnceValue(read)} }

// file is one of them, in both forms.
type file struct {
	kind          string
	etag          string
	plain, zipped []byte
}

func read() map[string]*file {
	out := map[string]*file{}
	entries, _ := assets.ReadDir("assets") // of the program itself
	for _, e := range entries {
		data, _ := assets.ReadFile("assets/" + e.Name())
		sum := sha256.Sum256(data)
		out[e.Name()] = &file{kinds[path.Ext(e.Name())], hex.EncodeToString(sum[:8]), data, zip(data)}
	}
	return out
}

func zip(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // of a level that exists
	_, _ = z.Write(data)                                  // into memory
	_ = z.Close()
	return b.Bytes()
}

// Serve answers a request for the page or one of its files, and reports whether it was one.
func (p *Page) Serve(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		w.Header().Add("Vary", "Accept")
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			return false
		}
		name = index
	}
	f := p.files()[name]
	if f == nil {
		return false
	}
	f.serve(w, r)
	return true
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Add("Vary", "Accept-Encoding")
	etag, data := f.etag, f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		etag, data = f.etag+"-gzip", f.zipped
	}
	h.Set("ETag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}
