package sanitize

import "strings"

// maxTuples bounds how many rows of an insertion are read.
const maxTuples = 64

// secretColumns are the numbers of those among names with commas that are secrets, with
// their weights.
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

// inserted finds the values of an INSERT that belong to columns with secrets, or to the name
// of one in the value before.
func (f *finder) inserted(from, to int) {
	if f.tokens || from < f.state.insert {
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

var tupleGap = classOf(`[\s,]`)

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
			for i < min(len(s), v.from+maxName) && s[i] != ',' && s[i] != ')' && s[i] != '\n' {
				i++
			}
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
	line, end := f.line(to)
	open := strings.LastIndexByte(f.s[line:max(from, line)], '(')
	shut := strings.LastIndexByte(f.s[line:max(from, line)], ')')
	if open < 0 || shut < open || end-line > maxValue {
		return
	}
	columns := f.secretColumns(line+open+1, line+shut)
	if len(columns) == 0 {
		return
	}
	at := end + 1
	for range maxRows {
		if at >= len(f.s) || f.s[at] == '\\' {
			return
		}
		stop := f.ahead(at, '\n', maxValue)
		for n, cell := range strings.Split(f.s[at:stop], "\t") {
			if w := columns[n]; w > noSecret && cell != "" && isSecret(cell, w, inQuotes) {
				f.accept(span{at, at + len(cell)})
			}
			at += len(cell) + 1
		}
		f.work += 3 * (stop - at)
		at = stop + 1
	}
}

// link finds the part of a URL that lets in who has it.
func (f *finder) link(from, to int) {
	begin := from
	for begin > max(0, from-readBefore) && !lineEnds.has(f.s[begin-1]) {
		begin--
	}
	end := to
	for end < min(len(f.s), to+maxRead) && linkByte.has(f.s[end]) {
		end++
	}
	text := f.s[to:end]
	f.work += from - begin + 4*len(text)
	if f.tokens || !strings.Contains(f.s[begin:from], "://") && begin == from || len(text) < 20 || placeholder(text) || isUUID(text) && f.s[from] == '/' {
		return
	}
	if isHex(text) && len(text) >= 32 || shapeOf(text) == random {
		f.accept(span{to, end})
	}
}

var linkByte = classOf(`[A-Za-z0-9_.~-]`)
