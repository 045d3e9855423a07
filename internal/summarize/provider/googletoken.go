package provider

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"

	"compactd/internal/summarize/model"
)

// googleTokens gives tokens of Google's application default credentials. They are
// looked for at the first request, and again while there are none; where and how is
// the library's affair, and its calls carry nothing of ours.
type googleTokens struct {
	mu    sync.Mutex // guards found
	found *auth.Credentials
}

var errGoogle = errors.New("no token from Google's application default credentials")

// tokenTimeout bounds a call for a token within the attempt it is for.
const tokenTimeout = 30 * time.Second

func newGoogleTokens() *googleTokens { return &googleTokens{} }

func (g *googleTokens) credentials() (*auth.Credentials, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.found == nil {
		c, err := credentials.DetectDefault(&credentials.DetectOptions{
			Scopes: []string{"https://www.googleapis.com/auth/cloud-platform"},
		})
		if err != nil {
			return nil, err
		}
		g.found = c
	}
	return g.found, nil
}

// authorize adds a token, which the library keeps until it expires.
func (g *googleTokens) authorize(req *http.Request, _ []byte) error {
	c, err := g.credentials()
	if err != nil {
		return &model.Error{Kind: model.Auth, Err: errGoogle}
	}
	ctx, cancel := context.WithTimeout(req.Context(), tokenTimeout)
	defer cancel()
	t, err := c.Token(ctx)
	if err != nil {
		return &model.Error{Kind: model.Auth, Err: errGoogle}
	}
	req.Header.Set("Authorization", "Bearer "+t.Value)
	return nil
}
