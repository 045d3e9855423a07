// Package extent follows how large a session is and would be, by what workers publish about it.
//
//	var t extent.Tracker
//	t.Turn(len(payload))
//	t.Note(outcome)
//	t.Peak()
//
// Tokens are those of the outcomes: estimates of the policy in force, corrected by usage.
package extent
