//go:build faults

package jsapi

import (
	"os"
)

// noFence is an injected defect that the tests must detect: COMPACTD_FAULT=no-fence
// enables it.
var noFence = os.Getenv("COMPACTD_FAULT") == "no-fence"

// Unfenced reports that commits have no fence, so that only a lease keeps owners apart.
func Unfenced() bool { return noFence }
