package model

import (
	"errors"
	"net/http"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
)

// googleToken adds the token of the application default credentials to requests.
// They are looked for at the first request: where and how is Google's library's
// affair, and its calls for tokens carry nothing of ours.
type googleToken struct {
	next        http.RoundTripper
	credentials func() (*auth.Credentials, error)
}

var errGoogleToken = errors.New("no token from Google's application default credentials")

func withGoogleToken(c *http.Client) *http.Client {
	find := sync.OnceValues(func() (*auth.Credentials, error) {
		return credentials.DetectDefault(&credentials.DetectOptions{
			Scopes: []string{"https://www.googleapis.com/auth/cloud-platform"},
		})
	})
	with := *c
	with.Transport = &googleToken{next: c.Transport, credentials: find}
	return &with
}

// RoundTrip implements [http.RoundTripper].
func (g *googleToken) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := g.credentials()
	if err != nil {
		return nil, &Error{Kind: Auth, Err: errGoogleToken}
	}
	token, err := c.Token(req.Context())
	if err != nil {
		return nil, &Error{Kind: Auth, Err: errGoogleToken}
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token.Value)
	return g.next.RoundTrip(req)
}
