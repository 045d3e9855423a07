package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"compactd/internal/summarize/model"
)

// transport sends requests to one host and reads their answers whole. It returns
// good answers only: everything else becomes a [*model.Error] here, in one place for
// all wire formats, without the texts of others, which may quote keys and prompts.
type transport struct {
	next    http.RoundTripper
	host    string // the only one, with its port
	maxBody int64
}

// Refusals of the transport. The texts are the operator's to read.
var (
	errHost     = errors.New("the request went to another host than the base URL's")
	errRedirect = errors.New("redirects are not followed")
	errTooBig   = errors.New("the answer is larger than max body")

	errCertificate = errors.New("the certificate of the host is not trusted")
	errBroken      = errors.New("the connection broke, or its answer is no HTTP")
)

// maxErrorBody limits the bytes read of an error response.
const maxErrorBody = 64 << 10

// newHTTPClient returns what requests are sent with. HTTP_PROXY and its like are not
// read.
func newHTTPClient(c Config, p preset) *http.Client {
	u, _ := url.Parse(c.BaseURL) // validated
	dial := c.Dial
	if dial == nil {
		dial = newDialer(c, p, u).DialContext
	}
	next := &http.Transport{
		DialContext:            dial,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return &http.Client{
		Transport:     &transport{next: next, host: u.Host, maxBody: c.MaxBody},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != t.host {
		return nil, &model.Error{Kind: model.Invalid, Err: errHost}
	}
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, broken(req.Context(), err)
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		// A cut or endless explanation changes nothing about the status.
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
		return nil, refusal(res.StatusCode, res.Header, body)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, t.maxBody+1))
	if err != nil {
		return nil, broken(req.Context(), err)
	}
	if int64(len(body)) > t.maxBody {
		return nil, &model.Error{Kind: model.BadAnswer, Status: res.StatusCode, Err: errTooBig}
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// broken is a connection that could not be made, or ended before its answer did.
func broken(ctx context.Context, err error) error {
	if denied, ok := errors.AsType[*addressError](err); ok {
		return &model.Error{Kind: model.Invalid, Err: denied}
	}
	if n, ok := errors.AsType[net.Error](err); ctx.Err() != nil || ok && n.Timeout() {
		return &model.Error{Kind: model.Timeout, Err: cause(err)}
	}
	return &model.Error{Kind: model.Unavailable, Err: cause(err)}
}

// cause keeps what the system reports of a connection, and nothing that the other
// end wrote: a malformed answer is quoted in the errors of net/http.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case certificate:
		return errCertificate
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	default:
		return errBroken
	}
}
