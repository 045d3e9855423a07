package compaction

// Row is one piece of a ledger as it is stored. Rows of one ledger have distinct
// names; their data is opaque to everybody else, and has no checksum of its own.
type Row struct {
	Name string
	Data []byte
}
