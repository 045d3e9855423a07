package sanitize

import (
	"strings"

	"compactd/internal/lazyregexp"
)

const (
	maxPEM      = 64 << 10 // of a private key
	minKeyRun   = 24       // base64 of a line of a key
	maxBetween  = 24       // bytes between two lines of a key
	lastKeyLine = 64
)

var (
	dash       = classOf(`[-]`)
	base64Byte = classOf(`[A-Za-z0-9+/=]`)
	digitClass = classOf(`[0-9]`)
)

// pemHead finds a private key from its head on, with its end or without.
func (f *finder) pemHead(from, to int) {
	if from < f.state.pem {
		return
	}
	body := to
	if strings.HasPrefix(f.low[body:], " block") {
		body += len(" block")
	}
	body = skip(f.s, body, 1, blank)
	if !strings.HasPrefix(f.s[body:], "----") {
		return
	}
	body = skip(f.s, body, 5, dash)
	begin := from
	if k := strings.LastIndex(f.low[max(0, from-112):from], "-----begin"); k >= 0 {
		begin = max(0, from-112) + k
	}
	f.work += 112
	if end := f.nextKeyEnd(body); end >= 0 && end-body <= maxPEM && end-body >= 16 && !strings.Contains(f.s[body:end], `":`) {
		f.found = append(f.found, span{begin, end})
		f.state.pem = end
		return
	}
	if end := f.keyLines(body); end > body {
		f.found = append(f.found, span{body, end})
		f.state.pem = end
	}
}

const keyEnd = "key-----"

// nextKeyEnd is behind the next end of a key, at most maxPEM away; -1 for none.
func (f *finder) nextKeyEnd(from int) int {
	last := &f.state.keyEnd
	if from < last.from || from > last.to {
		rest := f.low[from:min(len(f.low), from+maxPEM)]
		k := strings.Index(rest, keyEnd)
		if b := strings.Index(rest[:max(0, k)], "key block-----"); b >= 0 {
			k = b + len("key block-----") - len(keyEnd)
		}
		f.work += len(rest)
		*last = stretch{from, from + len(rest)}
		f.state.marked = k >= 0
		if k >= 0 {
			f.work += k - len(rest)
			last.to = from + k + len(keyEnd)
		}
	}
	if !f.state.marked {
		return -1
	}
	return last.to
}

// keyLines is the end of the lines of base64 that begin at a place.
func (f *finder) keyLines(from int) int {
	s := f.s
	end, i := from, from
	for {
		k := f.between(i)
		run := skip(s, k, len(s), base64Byte)
		f.work += run - i + 1
		if run-k < minKeyRun {
			if end > from && run-k > 0 && run-k <= lastKeyLine && k-i < 8 && f.lastLine(run) {
				end = run
			}
			return end
		}
		end, i = run, run
	}
}

// lastLine reports that nothing but the end of a key follows.
func (f *finder) lastLine(i int) bool {
	i = skip(f.s, i, 4, anySpace)
	return i == len(f.s) || f.s[i] == '-' || f.s[i] == '"' || f.s[i] == '\\'
}

// between is behind what stands between two lines of a key.
func (f *finder) between(i int) int {
	s := f.s
	for end := min(len(s), i+maxBetween); i < end; {
		number := skip(s, i, 6, digitClass)
		switch {
		case number > i && number < len(s) && (s[number] == ':' || s[number] == '\t' || s[number] == '|'):
			i = number + 1
		case number > i && strings.HasPrefix(s[number:], "→"):
			i = number + len("→")
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == 'n' || s[i+1] == 'r'):
			i += 2
		case !base64Byte.has(s[i]) && s[i] != '-':
			i++
		default:
			return i
		}
	}
	return i
}

// pemTail finds the lines of a private key before its end.
func (f *finder) pemTail(from, to int) {
	if !strings.Contains(f.low[to:min(len(f.low), to+110)], "private key") {
		return
	}
	s := f.s
	floor := max(f.state.pem, from-maxPEM, 0)
	f.state.pem = max(f.state.pem, to)
	start, i, first := from, from, true
	for {
		k := i
		for k > max(floor, i-maxBetween) && (!base64Byte.has(s[k-1]) && s[k-1] != '-' || (s[k-1] == 'n' || s[k-1] == 'r') && k > 1 && s[k-2] == '\\') {
			if k > 1 && s[k-2] == '\\' && (s[k-1] == 'n' || s[k-1] == 'r') {
				k--
			}
			k--
		}
		run := k
		for run > floor && base64Byte.has(s[run-1]) && !(run > 1 && s[run-2] == '\\' && (s[run-1] == 'n' || s[run-1] == 'r') && run < k) {
			run--
		}
		f.work += i - run + 1
		if k-run < minKeyRun && (!first || k == run) {
			break
		}
		first = false
		i, start = run, run
	}
	if from-start >= minKeyRun {
		f.found = append(f.found, span{start, from})
	}
}

var puttyLines = lazyregexp.New(`^(?i)private-lines:\s*\d+((?:\r?\n[A-Za-z0-9+/=]{4,80})+)`)

// puttyKey finds the private lines of a key of PuTTY.
func (f *finder) puttyKey(from, _ int) {
	end := min(len(f.s), from+8<<10)
	if from < f.state.pem {
		return
	}
	if m := puttyLines().FindStringSubmatchIndex(f.s[from:end]); m != nil {
		f.work += m[1]
		f.found = append(f.found, span{from + m[2], from + m[3]})
		f.state.pem = from + m[3]
	}
}
