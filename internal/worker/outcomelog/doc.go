// Package outcomelog reads the records of a partition in OUTCOMES: outcomes by the event that
// caused them, markers, and the configs that were in force.
//
//   - [Index] collects outcomes and markers for a replay (recovery).
//   - [ReadMarkers] reads the markers alone; [Reader] then streams the outcomes beside the log.
//   - [ConfigResolver] reads configs by their hash.
//
// Terms: a marker has the position of the last decided event; a config epoch is the range
// of events decided under one config; a rollback is a marker with a lower position than an earlier one:
// it supersedes earlier outcomes of later events.
//
// # Concurrency
//
// One goroutine may use a value at a time. A Reader reads ahead in a separate goroutine until Stop.
//
// # On failure
//
// Messages that belong to no commit ([commit.Assembler]) are skipped. For an outcome within a commit
// that cannot be decoded, [Index.Add] returns an error, and a Reader an [Outcome] with Err. An unknown config is an
// [*UnknownConfigError].
package outcomelog
