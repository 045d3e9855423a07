package sanitize

import "strings"

// Bounds of what is read of a table.
const (
	maxRows          = 400
	maxSecretColumns = 4
)

// tableState is the table that was read last.
type tableState struct {
	header, end int
	columns     int // read so far
}

// table looks for values of a name that heads a column, or stands in the cell before
// them.
func (f *finder) table(n *name) {
	s := f.s
	line, end := f.line(n.to)
	if word := f.low[n.bare:n.to]; word == "pass" && end-line < maxValue && (strings.Contains(f.low[line:end], "fail") || strings.Contains(f.low[line:end], "total")) {
		return // of a test
	}
	k := skip(s, n.to, 40, tableGap)
	if k < end && s[k] == '|' && (k+1 >= len(s) || s[k+1] != '|') {
		v := skip(s, k+1, 40, tableGap)
		if v < end && s[v] != '|' && s[v] != '-' {
			if to := f.ahead(v, '|', 200); to < end {
				f.cell(n, v, to)
			}
		}
	}
	if end-line > 2*maxValue || n.from < line {
		return
	}
	t := &f.state.table
	if f.state.row == line+1 || line < t.end && line != t.header || line == t.header && t.columns == maxSecretColumns {
		return // no header of a table, or a row of one
	}
	for _, sep := range []string{"|", ",", "\t", ";"} {
		header := s[line:end]
		columns := strings.Count(header, sep)
		if columns == 0 || columns > 60 || sep != "|" && (strings.ContainsAny(header, "(){}=:'") || strings.Contains(header, `"`) && !allQuoted(header, columns) || hasEmptyCell(header, sep)) {
			continue
		}
		if line != t.header || t.columns == 0 {
			*t = tableState{header: line}
		}
		t.columns++
		f.column(n, sep, strings.Count(s[line:n.from], sep), columns, end+1)
		return
	}
	if !f.aligned(n, line, end) {
		f.state.row = line + 1
	}
}

// allQuoted reports a header with a quote around each name.
func allQuoted(header string, columns int) bool {
	return strings.HasPrefix(header, `"`) && strings.Count(header, `"`) == 2*(columns+1)
}

// aligned looks through a column that begins in each row where its name does: it reports
// whether the name stands in such a header.
func (f *finder) aligned(n *name, line, end int) bool {
	s := f.s
	if n.weight < medium || end >= len(s) || n.bare > line && !strings.HasSuffix(s[line:n.bare], "  ") && !strings.HasSuffix(s[line:n.bare], "\t") || n.to < end && !strings.HasPrefix(s[n.to:], "  ") && s[n.to] != '\r' ||
		strings.Count(s[line:end], "  ") == 0 || skip(s, line, end-line, headerByte) != end || anySpace.has(s[line]) {
		return false
	}
	which := n.bare - line
	for at := end + 1; at < len(s) && at < end+maxRows*8; {
		stop := f.ahead(at, '\n', maxValue)
		if from := at + which; from < stop && s[from] != ' ' && s[from-1] == ' ' || which == 0 && from < stop {
			to := from
			for to < stop && !anySpace.has(s[to]) {
				to++
			}
			if shapeOf(s[from:to]) >= numbered || n.weight == strong {
				f.cell(n, from, to)
			}
			f.work += 3 * (to - from)
		} else {
			break
		}
		at = stop + 1
	}
	return false
}

var headerByte = classOf(`[A-Za-z0-9_ \t\r()-]`)

// hasEmptyCell reports a column without a name, which no header of a table has: an
// indented line of code, or an argument and its comma.
func hasEmptyCell(header, sep string) bool {
	for cell := range strings.SplitSeq(header, sep) {
		if strings.TrimSpace(cell) == "" {
			return true
		}
	}
	return false
}

var tableGap = classOf("[ \t*_`]")

// column looks through the cells under a header.
func (f *finder) column(n *name, sep string, which, columns, at int) {
	s := f.s
	for range maxRows {
		if at >= len(s) {
			return
		}
		end := f.ahead(at, '\n', maxValue)
		row := s[at:end]
		if row != "" && strings.Trim(row, "+-=|: \r") == "" { // a line between rows
			at = end + 1
			continue
		}
		if strings.Count(row, sep) != columns {
			return
		}
		from := at
		for range which {
			from += strings.Index(s[from:end], sep) + 1
		}
		to := end
		if k := strings.Index(s[from:end], sep); k >= 0 {
			to = from + k
		}
		f.cell(n, from, to)
		at = end + 1
		f.state.table.end = max(f.state.table.end, at)
	}
}

// cell checks the text of a cell.
func (f *finder) cell(n *name, from, to int) {
	s := f.s
	from = skip(s, from, to-from, tableGap)
	for to > from && (tableGap.has(s[to-1]) || quoteByte.has(s[to-1]) || s[to-1] == '\r') {
		to--
	}
	for from < to && quoteByte.has(s[from]) {
		from++
	}
	if from >= to || strings.Trim(s[from:to], "-:= ") == "" || strings.Contains(s[from:to], " ") {
		return
	}
	f.work += 4 * (to - from)
	how := inLine
	if n.weight < strong {
		how = inQuotes
	}
	if m := mixOf(s[from:min(to, from+maxRead)]); !isCode(s[from:to], &m) && isSecret(s[from:to], n.weight, how) {
		f.found = append(f.found, span{from, to})
	}
}
