//go:build !faults

package failpoint

// Pass, IgnoreMarker, CheckpointEarly and ForgetDirty act only with the build tag faults.

func Pass(string) {}

func IgnoreMarker() bool    { return false }
func CheckpointEarly() bool { return false }
func ForgetDirty() bool     { return false }
