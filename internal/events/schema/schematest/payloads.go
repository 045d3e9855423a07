package schematest

import (
	"reflect"
	"slices"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Payload is one shape that travels.
type Payload struct {
	Name string // of its schema, and the first part of the names of its fixtures
	// In: it comes from outside, and a decoder of package events checks it. Anything
	// else is what workers write.
	In   bool
	Type reflect.Type
	// Decode is the decoder of an In; nil for others.
	Decode func([]byte) error
	rules  rules
}

// Payloads lists all shapes, those of events first.
func Payloads() []Payload { return slices.Clone(payloads) }

// Find returns the payload of a name.
func Find(name string) (Payload, bool) {
	i := slices.IndexFunc(payloads, func(p Payload) bool { return p.Name == name })
	if i < 0 {
		return Payload{}, false
	}
	return payloads[i], true
}

var payloads = []Payload{
	in[turnPayload]("turn", events.DecodeTurn, turnRules),
	in[compactPayload]("compact", events.Decode[events.Compact], compactRules),
	in[rewindPayload]("rewind", events.Decode[events.Rewind], rewindRules),
	in[overflowPayload]("overflow", events.DecodeOverflow, overflowRules),
	in[endPayload]("end", events.Decode[events.End], endRules),
	in[forgetPayload]("forget", events.Decode[events.Erasure], forgetRules),
	in[events.Idle]("idle", events.Decode[events.Idle], idleRules),
	in[events.Branch]("branch", events.Decode[events.Branch], branchRules),
	in[events.Summary]("summary", events.DecodeSummary, summaryRules),

	out[events.Compacted]("compacted", with(budgetRules, rules{"summary": required("text"), "summary.usage": required()})),
	out[events.BudgetChanged]("budget", budgetRules),
	out[events.Rejected]("rejected", nil),
	out[events.Forgotten]("forgotten", nil),
	out[events.Erased]("erased", nil),
	out[events.Job]("job", nil),

	in[events.AttachRequest]("attach-request", events.Decode[events.AttachRequest], attachRules),
	in[events.CheckRequest]("check-request", events.Decode[events.CheckRequest], checkRules),
	in[events.ContextRequest]("context-request", events.Decode[events.ContextRequest], contextRules),
	in[events.FilesRequest]("files-request", events.Decode[events.FilesRequest], filesRules),
	in[events.HistoryRequest]("history-request", events.Decode[events.HistoryRequest], historyRules),
	in[events.OutcomeRequest]("outcome-request", events.Decode[events.OutcomeRequest], outcomeRules),
	in[events.RecallRequest]("recall-request", events.Decode[events.RecallRequest], recallRules),
	in[events.SessionsRequest]("sessions-request", events.Decode[events.SessionsRequest], sessionsRules),
	in[events.FleetRequest]("fleet-request", events.Decode[events.FleetRequest], with(envelope, rules{"partition": ranked["partition"]})),
	in[events.ContextRequest]("timeline-request", events.Decode[events.ContextRequest], contextRules),
	in[events.ContextRequest]("changes-request", events.Decode[events.ContextRequest], contextRules),
	in[events.ContextRequest]("xray-request", events.Decode[events.ContextRequest], contextRules),
	in[events.PreviewRequest]("preview-request", events.Decode[events.PreviewRequest], previewRules),
	in[events.WhatIfRequest]("whatif-request", events.Decode[events.WhatIfRequest], whatIfRules),
	in[events.StatsRequest]("stats-request", events.Decode[events.StatsRequest], statsRules),
	in[events.PoliciesRequest]("policies-request", events.Decode[events.PoliciesRequest], policiesRules),
	in[events.PolicyRequest]("policy-request", events.Decode[events.PolicyRequest], policyRules),
	in[events.TenantsRequest]("tenants-request", events.Decode[events.TenantsRequest], tenantsRules),
	in[syncPayload]("sync-request", events.Decode[events.SyncRequest], syncRules),
	in[events.CompressRequest]("compress-request", events.Decode[events.CompressRequest], compressRules),
	in[events.UsageRequest]("usage-request", events.Decode[events.UsageRequest], usageRules),

	out[events.AttachResponse]("attach-response", nil),
	out[events.CheckResponse]("check-response", nil),
	out[events.ContextResponse]("context-response", nil),
	out[events.EventResponse]("event-response", nil),
	out[events.FilesResponse]("files-response", nil),
	out[events.HealthResponse]("health-response", nil),
	out[events.HistoryResponse]("history-response", nil),
	out[events.OutcomeResponse]("outcome-response", nil),
	out[events.RecallResponse]("recall-response", nil),
	out[events.SearchResponse]("search-response", nil),
	out[events.SessionsResponse]("sessions-response", nil),
	out[events.StatsResponse]("stats-response", budgetRules),
	out[events.FleetResponse]("fleet-response", nil),
	out[events.TimelineResponse]("timeline-response", nil),
	out[events.ChangesResponse]("changes-response", rules{"summary": required("text"), "summary.usage": required()}),
	out[events.XrayResponse]("xray-response", nil),
	out[events.PreviewResponse]("preview-response", nil),
	out[events.WhatIfResponse]("whatif-response", nil),
	out[events.TenantsResponse]("tenants-response", nil),
	out[events.PoliciesResponse]("policies-response", nil),
	out[events.SyncResponse]("sync-response", budgetRules),
	out[events.CompressResponse]("compress-response", nil),
	out[events.UsageResponse]("usage-response", nil),
	out[events.RetrieveResponse]("retrieve-response", nil),
	out[events.TokenResponse]("token-response", nil),
	out[events.ServiceError]("error", nil),
}

func in[T, R any](name string, decode func([]byte) (R, error), r rules) Payload {
	return Payload{
		Name: name, In: true, Type: reflect.TypeFor[T](), rules: r,
		Decode: func(data []byte) error { _, err := decode(data); return err },
	}
}

func out[T any](name string, r rules) Payload {
	return Payload{Name: name, Type: reflect.TypeFor[T](), rules: r}
}

// Members beside the fields of a struct that a decoder returns.
type (
	versioned struct {
		V int `json:"v,omitzero"`
	}
	turnPayload struct {
		versioned
		events.Turn
		Usage codec.Raw `json:"usage,omitzero"`
	}
	syncPayload struct {
		events.SyncRequest
		Usage codec.Raw `json:"usage,omitzero"`
	}
	compactPayload struct {
		versioned
		events.Compact
	}
	rewindPayload struct {
		versioned
		events.Rewind
	}
	overflowPayload struct {
		versioned
		events.Overflow
	}
	endPayload struct {
		versioned
		ID string `json:"id,omitzero"`
	}
	forgetPayload endPayload
)
