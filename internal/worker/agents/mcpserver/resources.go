package mcpserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/service"
)

// Addresses of resources. They name no session, since a server has one.
const (
	summaryURI    = "compactd://session/summary"
	recordURI     = "compactd://session/record"
	generationURI = "compactd://session/generation/"
)

// addResources adds the summary, its record, and the generations of the history.
func (v *session) addResources(s *mcp.Server) {
	s.AddResource(&mcp.Resource{
		URI: summaryURI, Name: "summary", MIMEType: "text/plain", Description: "The summary that stands for the removed part of the history.",
	}, v.read("text/plain", func(ctx context.Context, _ string) (string, error) {
		in, err := v.summary(ctx)
		if err != nil {
			return "", err
		}
		return in.Text, nil
	}))
	s.AddResource(&mcp.Resource{
		URI: recordURI, Name: "record", MIMEType: "application/json", Description: "Facts of the removed part: each with its kind, text, and first and last turn.",
	}, v.read("application/json", func(ctx context.Context, _ string) (string, error) {
		in, err := v.summary(ctx)
		if err != nil {
			return "", err
		}
		data, err := codec.Marshal(in.Record)
		return string(data), err
	}))
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: generationURI + "{n}{?page}", Name: "generation", MIMEType: "application/json",
		Description: "The history as of a generation: 0 is the whole, the newest is what the model has. Its field pages counts the pages.",
	}, v.read("application/json", v.generation))
}

// read returns a handler that answers with a text of a content type. The text counts as memory until the HTTP answer
// has left.
func (v *session) read(kind string, text func(context.Context, string) (string, error)) mcp.ResourceHandler {
	return func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		body, err := text(ctx, r.Params.URI)
		limit.Of(ctx).Shrink(int64(len(body)) * limit.PerByte)
		if err != nil {
			return nil, fmt.Errorf("%s", explain(err)) //nolint:err113 // a client receives only its text
		}
		return &mcp.ReadResourceResult{
			Cacheable: mcp.Cacheable{CacheScope: "private"}, // absent is "public"
			Contents:  []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: kind, Text: body}},
		}, nil
	}
}

// summary returns the summary in force: that of the newest generation, or of the one that it was
// rewound to. Without a summary its text and record are empty.
func (v *session) summary(ctx context.Context) (*events.Summary, error) {
	at := map[int64]*events.Summary{}
	newest := &events.Summary{Record: []events.RecordLine{}}
	err := v.service.Compactions(ctx, v.Address, func(c *events.Compacted, _ time.Time, _ events.Trace) error {
		switch {
		case !c.Compacted:
			return nil
		case c.RewoundTo != nil:
			if newest = at[*c.RewoundTo]; newest == nil {
				newest = &events.Summary{Record: []events.RecordLine{}}
			}
		case c.Summary != nil:
			newest = c.Summary
		}
		at[c.Generation] = newest
		return nil
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, service.AnswerTimeout, service.ErrBusy)
	defer cancel()
	return newest, limit.Of(ctx).Remember(ctx, limit.PerByte*events.MaxSummaryBytes)
}

// generation returns one page of the history of a generation, in the form of a context response.
func (v *session) generation(ctx context.Context, uri string) (string, error) {
	if err := v.service.MayRecall(v.Tenant); err != nil {
		return "", err
	}
	n, page, _ := strings.Cut(strings.TrimPrefix(uri, generationURI), "?page=")
	generation, err := strconv.ParseInt(n, 10, 64)
	in := events.ContextRequest{About: v.About(), Generation: &generation, Page: 1}
	if err == nil && page != "" {
		in.Page, err = strconv.ParseInt(page, 10, 64)
	}
	if err != nil {
		return "", events.NewInvalid(events.CodeOutOfRange, "generation", "and page must be numbers, as in "+generationURI+"3?page=2")
	}
	out, err := v.service.Context(ctx, &in)
	if err != nil {
		return "", err
	}
	if !out.Known {
		return "", errUnknown
	}
	data, err := codec.Marshal(out)
	return string(data), err
}
