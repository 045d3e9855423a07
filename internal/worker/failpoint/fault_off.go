//go:build !faults

package failpoint

// Pass, IgnoreMarker, CheckpointEarly and SkipDirty act only with the build tag faults.

func Pass(string) {}

func IgnoreMarker() bool    { return false }
func CheckpointEarly() bool { return false }
func SkipDirty() bool       { return false }
