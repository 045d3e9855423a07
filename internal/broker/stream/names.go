package stream

// ackPrefix begins the reply subject of every message that a consumer delivers. The server
// sets it; a publisher cannot. See headers.go.
const ackPrefix = "$JS.ACK."

// Headers of a Direct Get answer.
const (
	headerSubject   = "Nats-Subject"
	headerSequence  = "Nats-Sequence"
	headerTimestamp = "Nats-Time-Stamp"
)

// Headers of the server's control messages.
const (
	headerStatus       = "Status"
	headerDescription  = "Description"
	headerPending      = "Nats-Pending-Messages"
	headerLastConsumer = "Nats-Last-Consumer"
	headerLastStream   = "Nats-Last-Stream"

	statusHeartbeat    = "100"
	statusBadRequest   = "400"
	statusNoMessages   = "404"
	statusTimeout      = "408"
	statusConflict     = "409"
	statusNoResponders = "503"
)

// Request subjects of the JetStream API; the name of a stream follows.
const (
	subjectDirectGet      = "$JS.API.DIRECT.GET."
	subjectDeleteConsumer = "$JS.API.CONSUMER.DELETE."
	subjectNext           = "$JS.API.CONSUMER.MSG.NEXT."
)
