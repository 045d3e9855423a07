package provider

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"golang.org/x/oauth2"

	"compactd/internal/summarize/model"
)

// googleTokens gives tokens of Google's application default credentials. They are
// looked for at the first request; where and how is the library's affair, and its
// calls carry nothing of ours.
type googleTokens struct {
	find func() (*auth.Credentials, error)
}

var errGoogle = errors.New("no token from Google's application default credentials")

// tokenTimeout bounds a call for a token, which has no context.
const tokenTimeout = 30 * time.Second

func newGoogleTokens() *googleTokens {
	return &googleTokens{find: sync.OnceValues(func() (*auth.Credentials, error) {
		return credentials.DetectDefault(&credentials.DetectOptions{
			Scopes: []string{"https://www.googleapis.com/auth/cloud-platform"},
		})
	})}
}

// Token implements [oauth2.TokenSource]; the library keeps a token until it expires.
func (g *googleTokens) Token() (*oauth2.Token, error) {
	c, err := g.find()
	if err != nil {
		return nil, &model.Error{Kind: model.Auth, Err: errGoogle}
	}
	ctx, cancel := context.WithTimeout(context.Background(), tokenTimeout)
	defer cancel()
	t, err := c.Token(ctx)
	if err != nil {
		return nil, &model.Error{Kind: model.Auth, Err: errGoogle}
	}
	return &oauth2.Token{AccessToken: t.Value, Expiry: t.Expiry}, nil
}

func withGoogleToken(c *http.Client) *http.Client {
	with := *c
	with.Transport = &oauth2.Transport{Base: c.Transport, Source: newGoogleTokens()}
	return &with
}
