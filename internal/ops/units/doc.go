// Package units formats counts, sizes and spans of time as people read them. Programs get exact
// numbers instead: JSON and logs carry bytes and milliseconds.
//
//	units.Count(1, "turn")         // 1 turn
//	units.Bytes(1_258_291)         // 1.2 MiB
//	units.Span(720 * time.Hour)    // 30d
//
// # Guarantees
//
//   - A size has the binary units, and two digits at least: 9.5 KiB, 81 KiB.
//   - A span has the two largest units that it needs, so 90 minutes are 1h30m, and is
//     exact below a second to the millisecond.
//
// # Concurrency
//
// Functions of their arguments alone.
//
// # On failure
//
// Nothing fails.
package units
