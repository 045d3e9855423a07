//go:build faults

package worker

import "os"

// ignoreMarker is a planted defect, to see that the tests notice it: the worker
// decides again what it has told already.
func ignoreMarker() bool { return os.Getenv("COMPACTD_FAULT") == "ignore-marker" }
