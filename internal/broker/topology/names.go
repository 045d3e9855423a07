package topology

// Streams.
const (
	// LogStream holds the events of agents, by partition.
	LogStream = "SESSIONS"
	// OutcomesStream holds the outcomes of workers, the jobs and the markers.
	OutcomesStream = "OUTCOMES"
)
