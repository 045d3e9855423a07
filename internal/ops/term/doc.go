// Package term writes for a person at a terminal: tables that fit its width, in colour
// where the terminal has it.
//
//	out, err := term.Open(os.Stdout, term.Auto)
//	t := term.NewTable(out, term.Column{Name: "SESSION", Min: 12}, term.Column{Name: "TURNS", Right: true, Drop: 1})
//	t.Row("chat-42", 17)
//	err = t.Flush()
//
// A table is given to any io.Writer. Where that is a [Screen] with a width, columns are
// shortened down to their Min, the widest first, and those with a Drop are left out, the
// highest first, until a row fits.
//
// # Guarantees
//
//   - Output to a pipe or a file is whole, unless COLUMNS is in the environment: then
//     it is the width, everywhere.
//   - On a screen with a width no line of a table is longer.
//   - A cell is one line, and holds nothing that a terminal would obey.
//   - Colour goes to a terminal only, and not with NO_COLOR or TERM=dumb; --color decides
//     before these.
//
// # Concurrency
//
// A screen and its tables are for one goroutine.
//
// # On failure
//
// The first error of the writer underneath is returned by Flush, or by the write.
package term
