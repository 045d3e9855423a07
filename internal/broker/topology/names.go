package topology

// Streams.
const (
	// LogStream holds what agents publish, by partition.
	LogStream = "SESSIONS"
	// OutcomesStream holds what workers decided, the jobs and the markers.
	OutcomesStream = "OUTCOMES"
)
