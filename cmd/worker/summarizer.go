package main

import (
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/coord"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/quota"
)

// summarizer has summaries written by the first of the models that can, each tenant
// within its share, else by the embedded summarizer. The fleet counts in a bucket of js.
func (f *flags) summarizer(js jetstream.JetStream) summarize.Summarizer {
	q := quota.New(quota.Limits{CallsPerMinute: f.TenantCallsPerMinute, TokensPerHour: f.TenantTokensPerHour}, coord.NewShares(js))
	guarded := make([]model.Model, len(f.models))
	for i, m := range f.models {
		guarded[i] = q.Guard(m)
	}
	return llm.New(guarded...)
}

// writers are the models that may be called for a job, in their order; none where the embedded summarizer writes.
func (f *flags) writers(j *events.Job) (names []string) {
	only := summarize.Writer{Provider: j.Provider, Model: j.Model}
	for _, m := range f.models {
		if only.Allows(m.Name()) {
			names = append(names, m.Name())
		}
	}
	return names
}

// writer is the first of them; "" is the embedded summarizer.
func (f *flags) writer(j *events.Job) string {
	return append(f.writers(j), "")[0]
}

// modelNames is the order in which a summary is tried.
func modelNames(models []model.Model) string {
	var names []string
	for _, m := range models {
		names = append(names, m.Name())
	}
	return strings.Join(append(names, provider.Embedded), ",")
}
