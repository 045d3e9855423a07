package codec

import (
	"bytes"
	"slices"
	"unicode/utf16"
)

// enter counts how deep the walker is.
func (w *Walker) enter() bool {
	if w.scan.depth++; w.scan.depth > MaxDepth {
		w.fail(errDepth)
	}
	return w.err == nil
}

// scanObject is Object for a walker that scans, and is at one.
func (w *Walker) scanObject(read func(key []byte)) Raw {
	s, start := w.scan, w.at
	if !w.enter() {
		return nil
	}
	base, from, write := len(s.members), len(s.out), s.write
	if write {
		s.out = append(s.out, '{')
	}
	w.at++
	for more := w.Kind() != '}'; more; {
		if w.Kind() != '"' {
			return w.fail(errSyntax)
		}
		to := len(s.out)
		raw, plain := w.scanString()
		if w.Kind() != ':' {
			return w.fail(errSyntax)
		}
		w.at++
		key := []byte(raw[1 : len(raw)-1])
		if !plain {
			key = TextBytes(raw)
		}
		if write {
			s.out = append(s.out, ':')
		}
		value := len(s.out)
		if read(key); w.err != nil {
			return nil
		}
		absent := s.omit || write && !s.keep && isNothing(s.out[value:])
		s.omit, s.keep = false, false
		switch {
		case absent:
			s.out = s.out[:to]
		case write:
			s.out = append(s.out, ',')
			s.members = append(s.members, member{key, to, len(s.out)})
		}
		switch w.Kind() {
		case ',':
			w.at++
		case '}':
			more = false
		default:
			return w.fail(errSyntax)
		}
	}
	w.at++
	s.depth--
	if write {
		s.sort(from+1, s.members[base:])
		s.members = s.members[:base]
		s.close(from, '}')
	}
	return w.from(start)
}

// scanArray is Array for a walker that scans, and is at one.
func (w *Walker) scanArray(element func()) Raw {
	s, start := w.scan, w.at
	if !w.enter() {
		return nil
	}
	from, write := len(s.out), s.write
	if write {
		s.out = append(s.out, '[')
	}
	w.at++
	for more := w.Kind() != ']'; more; {
		at := len(s.out)
		if element(); w.err != nil {
			return nil
		}
		switch {
		case s.omit:
			s.out = s.out[:at]
		case write:
			s.out = append(s.out, ',')
		}
		s.omit, s.keep = false, false
		switch w.Kind() {
		case ',':
			w.at++
		case ']':
			more = false
		default:
			return w.fail(errSyntax)
		}
	}
	w.at++
	s.depth--
	if write {
		s.close(from, ']')
	}
	return w.from(start)
}

// isNothing reports whether a value in its canonical form is null or an empty list.
func isNothing(v []byte) bool { return string(v) == "null" || string(v) == "[]" }

// close replaces the last comma after from by the closing bracket.
func (s *Scan) close(from int, bracket byte) {
	if n := len(s.out) - 1; n > from {
		s.out[n] = bracket
	} else {
		s.out = append(s.out, bracket)
	}
}

// sort sorts the members of an object whose canonical form begins at from. Of duplicates the last one stays.
func (s *Scan) sort(from int, ms []member) {
	sorted := true
	for i := 1; i < len(ms) && sorted; i++ {
		sorted = compareKeys(ms[i-1].key, ms[i].key) < 0
	}
	if sorted {
		return
	}
	if len(ms) > FewMembers {
		slices.SortStableFunc(ms, func(a, b member) int { return compareKeys(a.key, b.key) })
	} else {
		for i := 1; i < len(ms); i++ {
			m, k := ms[i], i
			for ; k > 0 && compareKeys(ms[k-1].key, m.key) > 0; k-- {
				ms[k] = ms[k-1]
			}
			ms[k] = m
		}
	}
	end := len(s.out)
	for i, m := range ms {
		if i+1 < len(ms) && bytes.Equal(m.key, ms[i+1].key) {
			continue
		}
		s.out = append(s.out, s.out[m.from:m.to]...)
	}
	s.out = s.out[:from+copy(s.out[from:], s.out[end:])]
}

// compareKeys orders keys by their UTF-16 units. That is the order of their bytes, unless a key has a rune
// beyond the basic plane.
func compareKeys(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) || n == len(b) || a[n] < 0xf0 && b[n] < 0xf0 {
		return bytes.Compare(a[n:], b[n:])
	}
	return slices.Compare(utf16.Encode([]rune(string(a[n:]))), utf16.Encode([]rune(string(b[n:]))))
}
