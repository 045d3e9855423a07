package sessions

import "embed"

// Files are transcripts that package transcript reads.
//
//go:embed *.jsonl.gz
var Files embed.FS
