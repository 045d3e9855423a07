// Package outcomelog reads what OUTCOMES records about a partition: outcomes by the event
// they follow from, markers, and the configs that were in force.
//
//   - [Index] collects outcomes and markers for a replay (recovery).
//   - [ReadMarkers] reads the markers alone; [Reader] then streams the outcomes beside the log.
//   - [ConfigResolver] reads configs by their hash.
//
// Terms: a marker has the position up to which event a partition is decided; a config epoch is the range
// of events decided under one config; a rollback is a marker behind an earlier one, after
// which earlier outcomes about later events are superseded.
//
// # Concurrency
//
// Values are for one goroutine. A Reader reads ahead in one of its own until Stop.
//
// # On failure
//
// Messages that are of no commit ([commit.Assembler]) are skipped. Within a commit, an outcome
// that cannot be decoded is an error of [Index.Add], and an [Outcome] with Err of a Reader. An unknown config is an [*UnknownConfigError].
package outcomelog
