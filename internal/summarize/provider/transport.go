package provider

import (
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

// Refusals of the transport. The texts are the operator's to read.
var (
	errRedirect = errors.New("redirects are not followed")
	errTooBig   = errors.New("the answer is larger than max body")

	errCertificate = errors.New("the certificate of the host is not trusted")
	errBroken      = errors.New("the connection broke, or its answer is no HTTP")
)

// Bounds of an answer, and of an error response, in bytes.
const (
	maxBody      = 4 << 20
	maxErrorBody = 64 << 10
)

// newTransport returns what requests are sent with. It follows no redirects, and HTTP_PROXY and its like are not
// read.
func newTransport(c Config, p preset) *http.Transport {
	u, _ := url.Parse(c.BaseURL) // validated
	dial := c.Dial
	if dial == nil {
		dial = newDialer(c, p, u).DialContext
	}
	return &http.Transport{
		DialContext:            dial,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// readBody reads an answer whole. One without success becomes a [*model.Error] without the texts of others, which
// may quote keys and prompts.
func readBody(res *http.Response) ([]byte, error) {
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		// A cut or endless explanation changes nothing about the status.
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
		return nil, refusal(res.StatusCode, res.Header, body)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err != nil {
		return nil, broken(res.Request.Context(), err)
	}
	if len(body) > maxBody {
		return nil, &model.Error{Kind: model.BadAnswer, Status: res.StatusCode, Err: errTooBig}
	}
	return body, nil
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
