package events

// Forgotten is a session.forgotten: everything of a session before Seq counts as
// never published. It says nothing of what the session held, since a replay of the
// log, from which that is gone, must come to the same bytes.
type Forgotten struct {
	Header
	Config   string `json:"config"`
	CausedBy Cause  `json:"caused_by"`
	Seq      uint64 `json:"seq"` // of the session.forget
}

// Erased is a session.erased: what a session.forget asked for is done. It follows
// from no log, it is what the owner of the partition did.
type Erased struct {
	Header
	CausedBy Cause  `json:"caused_by"` // the session.forget
	Seq      uint64 `json:"seq"`       // of it
	// What was overwritten: events of the log, and outcomes and jobs.
	Events   int64 `json:"events"`
	Outcomes int64 `json:"outcomes"`
	// Files is how many ledger files were removed that had been set aside.
	Files int64 `json:"files"`
	// Resumed says that an earlier try was cut off: the figures are of the last one.
	Resumed bool `json:"resumed,omitzero"`
}

// DecodeForget reads the payload of a session.forget, which holds an id at most.
// What it erases does not come back, so a field it does not know refuses it. Its
// error is an [*Invalid].
func DecodeForget(data []byte) (id string, err error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return "", err
	}
	for _, f := range env.fields {
		if f.Name != "v" && f.Name != "id" {
			env.problems.add(CodeBadType, "", "has a field that session.forget does not know; it erases the whole session")
			break
		}
	}
	return env.text("id"), env.problems.err()
}
