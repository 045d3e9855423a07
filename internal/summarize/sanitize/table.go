package sanitize

import (
	"strings"
)

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
		if columns == 1 && sep == "|" && strings.Trim(header[:strings.IndexByte(header, '|')], " 0123456789") == "" {
			continue // the number of a line
		}
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
	f.aligned(n, line, end)
	f.state.row = line + 1
}

// allQuoted reports a header with a quote around each name.
func allQuoted(header string, columns int) bool {
	return strings.HasPrefix(header, `"`) && strings.Count(header, `"`) == 2*(columns+1)
}

// aligned looks through a column that begins in each row where its name does.
func (f *finder) aligned(n *name, line, end int) {
	s, t := f.s, &f.state.aligned
	if line < t.end && line != t.header || line == t.header && t.end > 0 && t.columns == maxSecretColumns || n.weight < medium || end >= len(s) || n.bare > line && !strings.HasSuffix(s[line:n.bare], "  ") && !strings.HasSuffix(s[line:n.bare], "\t") || n.to < end && !strings.HasPrefix(s[n.to:], "  ") && s[n.to] != '\r' ||
		strings.Count(s[line:end], "  ") == 0 || skip(s, line, end-line, columnByte) != end || anySpace.has(s[line]) {
		return
	}
	if line != t.header || t.end == 0 {
		*t = tableState{header: line, end: end}
	}
	t.columns++
	which := n.bare - line
	for at := end + 1; at < len(s) && at < end+maxRows*8; {
		stop := f.ahead(at, '\n', maxValue)
		if from := at + which; from < stop && s[from] != ' ' && s[from-1] == ' ' || which == 0 && from < stop {
			to := skip(s, from, stop-from, anySpace.not())
			if shapeOf(s[from:to]) >= numbered || n.weight == strong {
				f.cell(n, from, to)
			}
			f.work += 3 * (to - from)
		} else {
			break
		}
		at = stop + 1
		t.end = max(t.end, at)
	}
}

var columnByte = classOf(`[A-Za-z0-9_ \t\r()-]`)

// hasEmptyCell reports whether a column has no name. No header of a table has such a column; an
// indented line of code has, and an argument with a comma at its end.
func hasEmptyCell(header, sep string) bool {
	for cell := range strings.SplitSeq(header, sep) {
		if strings.TrimSpace(cell) == "" {
			return true
		}
	}
	return false
}

var (
	tableGap = classOf("[ \t*_`]")
	cellEnd  = classOf("[ \t*_`'\"\r]")
)

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
	to = skipBack(s, to, from, cellEnd)
	from = skip(s, from, to-from, quoteByte)
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

// maxTuples bounds how many rows of an insertion are read.
const maxTuples = 64

// secretColumns splits a list of names at its commas, and returns the weight of each name of a secret
// by its number.
func (f *finder) secretColumns(from, to int) map[int]weight {
	var out map[int]weight
	for i, name := range strings.Split(f.s[from:to], ",") {
		if w := weigh(strings.Trim(name, " \t\n\"`[]'")); w >= medium {
			if out == nil {
				out = map[int]weight{}
			}
			out[i] = w
		}
	}
	f.work += 4 * (to - from)
	return out
}

// inserted finds the secrets of an INSERT: values of a secret's column, and values behind one that
// names a secret.
func (f *finder) inserted(from, to int) {
	if from < f.state.insert {
		return
	}
	s := f.s
	end := min(len(s), to+2*maxRead)
	low := f.low[to:end]
	k := strings.Index(low, "values")
	f.work += len(low)
	f.state.insert = to
	if k < 0 {
		return
	}
	columns := map[int]weight{}
	if open := strings.IndexByte(low[:k], '('); open >= 0 {
		if shut := strings.IndexByte(low[open:k], ')'); shut > 0 {
			columns = f.secretColumns(to+open+1, to+open+shut)
		}
	}
	at := to + k + len("values")
	for range maxTuples {
		i := skip(s, at, 8, tupleGap)
		if i >= len(s) || s[i] != '(' {
			break
		}
		at = f.tuple(i+1, columns)
	}
	f.state.insert = at
}

var (
	tupleGap  = classOf(`[\s,]`)
	tupleByte = classOf(`[^,)\n]`)
)

// tuple checks the values of a row, and returns what is behind it.
func (f *finder) tuple(i int, columns map[int]weight) int {
	s := f.s
	named := noSecret
	for n := 0; i < len(s) && n < 100; n++ {
		i = skip(s, i, 8, anySpace)
		v := span{i, i}
		if i < len(s) && (s[i] == '\'' || s[i] == '"') {
			k := strings.IndexByte(s[i+1:min(len(s), i+maxValue)], s[i])
			if k < 0 {
				return i
			}
			v = span{i + 1, i + 1 + k}
			i = v.to + 1
		} else {
			i = skip(s, v.from, maxName, tupleByte)
			v.to = i
		}
		f.work += 4 * (min(v.to-v.from, maxRead) + 2)
		text := s[v.from:v.to]
		if w := max(columns[n], named); w > noSecret && text != "" && isSecret(text, w, inQuotes) {
			f.accept(v)
		}
		named = noSecret
		if len(text) > 2 && len(text) < maxName {
			named = weigh(text)
			if named < medium {
				named = noSecret
			}
		}
		if i = skip(s, i, 4, blank); i >= len(s) || s[i] != ',' {
			break
		}
		i++
	}
	if k := skip(s, i, 2, anySpace); k < len(s) && s[k] == ')' {
		return k + 1
	}
	return i
}

// copied finds the values of COPY t (…) FROM stdin in the lines behind it.
func (f *finder) copied(from, to int) {
	if from < f.state.copied+readAgain/4 && f.state.copied > 0 {
		return // a row of the last one
	}
	f.state.copied = to
	line, end := f.back(from, '\n', 2*maxRead), f.ahead(to, '\n', maxRead)
	open := strings.LastIndexByte(f.s[line:max(from, line)], '(')
	shut := strings.LastIndexByte(f.s[line:max(from, line)], ')')
	if open < 0 || shut < open {
		return
	}
	columns := f.secretColumns(line+open+1, line+shut)
	if len(columns) == 0 {
		return
	}
	names := 1 + strings.Count(f.s[line+open:line+shut], ",")
	at := end + 1
	f.state.copied = at
	for range maxRows {
		if at >= len(f.s) || f.s[at] == '\\' {
			return
		}
		start, stop := at, f.ahead(at, '\n', maxValue)
		if strings.Count(f.s[at:stop], "\t") != names-1 {
			return
		}
		for n, cell := range strings.Split(f.s[at:stop], "\t") {
			if w := columns[n]; w > noSecret && cell != "" && isSecret(cell, w, inQuotes) {
				f.accept(span{at, at + len(cell)})
			}
			at += len(cell) + 1
		}
		f.work += 6 * (stop + 1 - start)
		at = stop + 1
		f.state.copied = at
	}
}
