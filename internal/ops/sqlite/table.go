package sqlite

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Bounds of what a damaged file may claim.
const (
	maxDepth   = 20       // of a tree
	maxPayload = 64 << 20 // of a row, in bytes
)

// Kinds of pages of a table.
const (
	interior = 0x05
	leaf     = 0x0d
)

// Table is a table, with the columns that are read of it.
type Table struct {
	db      *DB
	root    uint32
	columns []int // -1 where the table has none of that name
}

// Ref is the place of a row.
type Ref struct {
	page uint32
	at   uint16
}

// Table finds a table by name. A column that it does not have is nil in each row.
func (db *DB) Table(name string, columns ...string) (*Table, error) {
	schema := &Table{db: db, root: 1, columns: []int{0, 1, 3, 4}} // type, name, rootpage, sql
	for ref, err := range schema.Rows() {
		if err != nil {
			return nil, err
		}
		row, err := schema.Read(ref)
		if err != nil {
			return nil, err
		}
		root, _ := row[2].(int64)
		if row[0] != "table" || row[1] != name || root < 1 || root > int64(db.pages) {
			continue
		}
		sql, _ := row[3].(string)
		have := columnsOf(sql)
		t := &Table{db: db, root: uint32(root)}
		for _, c := range columns {
			t.columns = append(t.columns, slices.Index(have, c))
		}
		return t, nil
	}
	return nil, fmt.Errorf("%w: there is no table %s", ErrFormat, name)
}

// columnsOf are the names of the columns that a statement creates.
func columnsOf(sql string) (out []string) {
	_, body, _ := strings.Cut(sql, "(")
	depth := 0
	for _, field := range strings.FieldsFunc(body, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth == 0
	}) {
		words := strings.Fields(field)
		if len(words) == 0 || slices.Contains([]string{"PRIMARY", "FOREIGN", "UNIQUE", "CHECK", "CONSTRAINT"}, strings.ToUpper(words[0])) {
			continue
		}
		out = append(out, strings.Trim(words[0], "`\"[]"))
	}
	return out
}

// Rows are those of the table, in the order of their rowids.
func (t *Table) Rows() iter.Seq2[Ref, error] {
	return func(yield func(Ref, error) bool) {
		left := t.db.readable() // no page is in a tree twice
		t.walk(t.root, 0, &left, yield)
	}
}

func (t *Table) walk(n uint32, depth int, left *int, yield func(Ref, error) bool) bool {
	if *left--; *left < 0 || depth > maxDepth {
		return yield(Ref{}, fmt.Errorf("%w: a tree has a loop", ErrFormat))
	}
	page, err := t.db.page(n)
	if err != nil {
		return yield(Ref{}, err)
	}
	kind, cells, err := cellsOf(n, page)
	if err != nil {
		return yield(Ref{}, err)
	}
	for _, at := range cells {
		switch {
		case kind == leaf:
			if !yield(Ref{n, at}, nil) {
				return false
			}
		case int(at)+4 > len(page):
			return yield(Ref{}, fmt.Errorf("%w: page %d", ErrFormat, n))
		case !t.walk(binary.BigEndian.Uint32(page[at:]), depth+1, left, yield):
			return false
		}
	}
	if kind == interior {
		return t.walk(binary.BigEndian.Uint32(page[start(n)+8:]), depth+1, left, yield)
	}
	return true
}

// start is the place of a page's header: the first page begins with the file's header.
func start(page uint32) int {
	if page == 1 {
		return fileHeader
	}
	return 0
}

// cellsOf are the places of the cells of a page.
func cellsOf(n uint32, page []byte) (kind byte, cells []uint16, err error) {
	at := start(n)
	kind, count := page[at], int(binary.BigEndian.Uint16(page[at+3:]))
	first := at + 8
	if kind == interior {
		first += 4
	}
	if kind != interior && kind != leaf || first+2*count > len(page) {
		return 0, nil, fmt.Errorf("%w: page %d does not belong to a table", ErrFormat, n)
	}
	for i := range count {
		cells = append(cells, binary.BigEndian.Uint16(page[first+2*i:]))
	}
	return kind, cells, nil
}

// Read reads a row: for each column nil, an int64, a string, bytes, or nil for a fraction.
func (t *Table) Read(ref Ref) ([]any, error) {
	page, err := t.db.page(ref.page)
	if err != nil {
		return nil, err
	}
	bad := fmt.Errorf("%w: a row of page %d", ErrFormat, ref.page)
	if int(ref.at) >= len(page) {
		return nil, bad
	}
	cell := page[ref.at:]
	size, n := varint(cell)
	_, m := varint(cell[n:])
	if n == 0 || m == 0 || size < 0 || size > min(maxPayload, int64(t.db.readable())*int64(t.db.usable)) {
		return nil, bad
	}
	record, err := t.db.payload(cell[n+m:], int(size))
	if err != nil {
		return nil, err
	}
	values, ok := decode(record, slices.Max(append(slices.Clone(t.columns), 0))+1)
	if !ok {
		return nil, bad
	}
	out := make([]any, len(t.columns))
	for i, c := range t.columns {
		if c >= 0 && c < len(values) {
			out[i] = values[c]
		}
	}
	return out, nil
}

// payload is the content of a cell, with what is on further pages.
func (db *DB) payload(cell []byte, size int) ([]byte, error) {
	local := size
	if most := db.usable - 35; size > most {
		least := (db.usable-12)*32/255 - 23
		if local = least + (size-least)%(db.usable-4); local > most {
			local = least
		}
	}
	if local > len(cell) || local < size && local+4 > len(cell) {
		return nil, fmt.Errorf("%w: a row is cut", ErrFormat)
	}
	out := slices.Clone(cell[:local])
	for next := uint32(0); len(out) < size; {
		if len(out) == local {
			next = binary.BigEndian.Uint32(cell[local:])
		}
		page, err := db.page(next)
		if err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(page)
		out = append(out, page[4:min(len(page), 4+size-len(out))]...)
	}
	return out, nil
}

// decode reads the first values of a record.
func decode(record []byte, count int) (out []any, ok bool) {
	head, n := varint(record)
	if n == 0 || head < int64(n) || head > int64(len(record)) {
		return nil, false
	}
	kinds, body := record[n:head], record[head:]
	for len(kinds) > 0 && len(out) < count {
		kind, n := varint(kinds)
		size := sizeOf(kind)
		if n == 0 || kind < 0 || size > len(body) {
			return nil, false
		}
		out = append(out, value(kind, body[:size]))
		kinds, body = kinds[n:], body[size:]
	}
	return out, true
}

// sizeOf is the size of a value of a kind, in bytes.
func sizeOf(kind int64) int {
	switch {
	case kind >= 12:
		return int(min((kind-12)/2, maxPayload+1))
	case kind >= 8:
		return 0
	default:
		return []int{0, 1, 2, 3, 4, 6, 8, 8}[max(kind, 0)]
	}
}

func value(kind int64, data []byte) any {
	switch {
	case kind >= 12 && kind%2 == 1:
		return string(data)
	case kind >= 12:
		return slices.Clone(data)
	case kind == 0 || kind == 7: // fractions are read of no table
		return nil
	case kind >= 8:
		return kind - 8
	}
	n := int64(int8(data[0]))
	for _, b := range data[1:] {
		n = n<<8 | int64(b)
	}
	return n
}

// varint reads a number of up to nine bytes; n is 0 where it is cut.
func varint(data []byte) (v int64, n int) {
	for i, b := range data[:min(len(data), 9)] {
		if i == 8 {
			return v<<8 | int64(b), 9
		}
		if v = v<<7 | int64(b&0x7f); b < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
