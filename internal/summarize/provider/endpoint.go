package provider

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"

	"compactd/internal/events/codec"
	"compactd/internal/summarize/model"
)

// endpoint is the one address that a model is called at, and what every request to
// it carries. It is safe for concurrent use.
type endpoint struct {
	transport *http.Transport
	url       string
	header    http.Header
	// authorize adds what changes from request to request, such as a token or a
	// signature of body; nil adds nothing.
	authorize func(req *http.Request, body []byte) error
}

// newEndpoint joins path to the base URL. The path is escaped already.
func newEndpoint(c Config, p preset, path string) *endpoint {
	u, _ := url.JoinPath(c.BaseURL, path) // validated
	return &endpoint{transport: newTransport(c, p), url: u, header: http.Header{
		"Accept": {"application/json"}, "Content-Type": {"application/json"}, "User-Agent": {"compactd"},
	}}
}

// post sends request as JSON and decodes the answer. An error that is no [*model.Error] is an answer in a
// foreign shape.
func (e *endpoint) post(ctx context.Context, request, answer any) error {
	body, err := codec.Marshal(request)
	if err != nil {
		return &model.Error{Kind: model.Invalid, Err: errRequest}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return &model.Error{Kind: model.Invalid, Err: errRequest}
	}
	req.Header = e.header.Clone()
	if e.authorize != nil {
		if err := e.authorize(req, body); err != nil {
			return err
		}
	}
	res, err := e.transport.RoundTrip(req)
	if err != nil {
		return broken(ctx, err)
	}
	data, err := readBody(res)
	if err != nil {
		return err
	}
	return codec.UnmarshalLenient(data, answer)
}

// tokens is a count of tokens in an answer. Any other value counts 0: an answer is used
// though its usage cannot be read.
type tokens int64

// UnmarshalJSON implements json.Unmarshaler. It does not fail.
func (t *tokens) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f < 0 {
		f = 0
	}
	*t = tokens(min(f, maxUsage))
	return nil
}

// finishOf looks up a provider's reason; one that is not known is [model.FinishOther].
func finishOf(reasons map[string]model.Finish, reason string) model.Finish {
	return cmp.Or(reasons[reason], model.FinishOther)
}
