package events

// SubjectHistory asks when and why the history of a session was changed.
const SubjectHistory = "compactd.history"

// MaxHistory bounds the entries of an answer.
const MaxHistory = 100

// HistoryRequest asks for the compactions and rewinds of a session.
type HistoryRequest struct {
	V       int    `json:"v,omitzero"`
	Tenant  string `json:"tenant,omitzero"` // absent: [DefaultTenant]
	Session string `json:"session"`
	Limit   int64  `json:"limit,omitzero"` // absent is [MaxHistory]
}

// HistoryResponse lists what was published as session.compacted, the newest first.
type HistoryResponse struct {
	V          int     `json:"v"`
	Known      bool    `json:"known"` // false: no turn of the session was taken or parked
	Generation int64   `json:"generation"`
	Through    Through `json:"through"`
	// Entries are what the stream of outcomes still has.
	Entries []HistoryEntry `json:"entries"`
	// Older counts the entries before these.
	Older int64 `json:"older,omitzero"`
}

// HistoryEntry is one session.compacted without its messages. Fields of the same name
// are those of [Compacted].
type HistoryEntry struct {
	// Time is when it was stored, in Unix milliseconds of the stream.
	Time           int64         `json:"time_ms"`
	ID             string        `json:"id"`
	Generation     int64         `json:"generation"`
	Compacted      bool          `json:"compacted"`
	Code           Code          `json:"code,omitzero"`
	Reason         Reason        `json:"reason"`
	Config         string        `json:"config"`
	CausedBy       Cause         `json:"caused_by"`
	Request        *Cause        `json:"request,omitzero"`
	RewoundTo      *int64        `json:"rewound_to,omitzero"`
	Through        Through       `json:"through"`
	StagesUsed     []Stage       `json:"stages_used"`
	Stages         []StageReport `json:"stages"`
	TokensBefore   int64         `json:"tokens_before"`
	TokensAfter    int64         `json:"tokens_after"`
	AvailableInput int64         `json:"available_input_tokens"`
	// Messages counts those of the effective history; 0 where they were left out.
	Messages int64 `json:"messages"`
	// SummaryModel wrote the summary; "" where there is none.
	SummaryModel string `json:"summary_model,omitzero"`
	Level        Level  `json:"level"`
}

// Entry is an outcome as a history lists it, stored at a time in Unix milliseconds.
func (b *Compacted) Entry(stored int64) HistoryEntry {
	e := HistoryEntry{
		Time: stored, ID: b.ID, Generation: b.Generation, Compacted: b.Compacted, Code: b.Code, Reason: b.Reason, Config: b.Config,
		CausedBy: b.CausedBy, Request: b.Request, RewoundTo: b.RewoundTo, Through: b.Through, StagesUsed: b.StagesUsed, Stages: b.Stages,
		TokensBefore: b.TokensBefore, TokensAfter: b.TokensAfter, AvailableInput: b.AvailableInput, Messages: int64(len(b.Messages)), Level: b.Budget.Level,
	}
	if b.Summary != nil {
		e.SummaryModel = b.Summary.Model
	}
	return e
}

// Address names the session that is asked about.
func (r *HistoryRequest) Address() Address { return Address{r.Tenant, r.Session} }

// DecodeHistoryRequest reads the payload of a compactd.history. Its error is an
// [*Invalid].
func DecodeHistoryRequest(data []byte) (*HistoryRequest, error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	a := env.address()
	return &HistoryRequest{V: Version, Tenant: a.Tenant, Session: a.Session, Limit: env.count("limit", 1, MaxHistory)}, env.problems.err()
}
