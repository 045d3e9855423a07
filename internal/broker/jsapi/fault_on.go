//go:build faults

package jsapi

import (
	"os"
)

// noFence is a planted defect, to see that the tests notice it: COMPACTD_FAULT
// names it.
var noFence = os.Getenv("COMPACTD_FAULT") == "no-fence"

// Unfenced reports that commits carry no fence, so that a lease alone keeps owners apart.
func Unfenced() bool { return noFence }
