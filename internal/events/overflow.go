package events

// MaxOverflowBytes bounds a session.overflow. Errors of providers have some
// hundred bytes; those that echo a whole request are cut by their SDKs.
const MaxOverflowBytes = 256 << 10

// Overflow is a session.overflow: a provider refused a call, most likely as too
// long. Package overflow says what the error is.
type Overflow struct {
	ID     string `json:"id,omitzero"`
	Error  Raw    `json:"error,omitzero"`  // string, object or array as the agent got it; nil when there was no body
	Status int64  `json:"status,omitzero"` // HTTP status; 0 when it is not known
	Model  *Model `json:"model,omitzero"`  // of the call; nil = that of the session
	// Generation is the compaction the agent had applied when it made the call; −1
	// when it does not say, which stands for the newest.
	Generation int64 `json:"generation,omitzero"`
}

// DecodeOverflow reads the payload of a session.overflow. Its error is an
// [*Invalid] that lists every problem; where the payload was one JSON object the
// event comes beside it, without the fields that are wrong. It holds parts of
// data, which must not change afterwards.
func DecodeOverflow(data []byte) (*Overflow, error) {
	env, err := decodeEnvelope(data, MaxOverflowBytes)
	if err != nil {
		return nil, err
	}
	o := &Overflow{
		ID:     env.text("id"),
		Error:  env.raw("error", '"', '{', '['),
		Status: env.count("status", 100, 599),
		Model:  env.model(),

		Generation: -1,
	}
	if _, ok := env.take("generation"); ok {
		o.Generation = env.count("generation", 0, MaxNumber)
	}
	_, hasError := env.take("error")
	if _, hasStatus := env.take("status"); !hasError && !hasStatus {
		env.problems.add(CodeMissingField, "error", "is required without status")
	}
	return o, env.problems.err()
}
