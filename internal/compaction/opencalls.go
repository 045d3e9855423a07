package compaction

// openCalls finds the calls of an exchange that have no result yet.
type openCalls struct {
	entries []Entry
	other   []int // as far as it is known

	exchange int // where it begins
	oldest   int // no call of the exchange before it is open

	// An index of the exchange up to an entry, made when a search would be long: an
	// agent may send a hundred thousand calls in a turn.
	index   map[name][]int
	indexed int
}

// name is what a call is looked for by: its id, or its tool.
type name struct {
	tool bool
	key  Key
}

// of reports whether a call has the name.
func (n name) of(e *Entry) bool {
	if n.tool {
		return e.Tool == n.key
	}
	return e.Call == n.key
}

// maxScan is how many entries are searched for a call without an index.
const maxScan = 32

// enter forgets the exchange before.
func (c *openCalls) enter(exchange int) {
	if exchange > c.exchange {
		c.exchange, c.oldest, c.index, c.indexed = exchange, exchange, nil, exchange
	}
}

// of returns the open call that the result at position i answers: the oldest of its
// id, or of those without one; for a result without id the oldest of its tool, or
// of all. It returns −1 if there is none.
func (c *openCalls) of(i int) int {
	e := &c.entries[i]
	for c.oldest < i && !c.open(c.oldest) {
		c.oldest++
	}
	switch {
	case c.oldest == i:
		return -1
	case e.Call != 0:
		if call := c.find(name{key: e.Call}, i); call >= 0 {
			return call
		}
		return c.find(name{}, i)
	case e.Tool != 0:
		if call := c.find(name{true, e.Tool}, i); call >= 0 {
			return call
		}
	}
	return c.oldest
}

func (c *openCalls) open(i int) bool { return c.entries[i].Kind == KindCall && c.other[i] < 0 }

// find returns the oldest open call of a name before position i, or −1.
func (c *openCalls) find(n name, i int) int {
	if i-c.oldest > maxScan {
		return c.lookUp(n, i)
	}
	for k := c.oldest; k < i; k++ {
		if n.of(&c.entries[k]) && c.open(k) {
			return k
		}
	}
	return -1
}

// lookUp does what find does, by the index.
func (c *openCalls) lookUp(n name, i int) int {
	if c.index == nil {
		c.index = map[name][]int{}
	}
	for ; c.indexed < i; c.indexed++ {
		if e := &c.entries[c.indexed]; e.Kind == KindCall {
			for _, n := range []name{{false, e.Call}, {true, e.Tool}} {
				c.index[n] = append(c.index[n], c.indexed)
			}
		}
	}
	calls := c.index[n]
	for len(calls) > 0 && !c.open(calls[0]) {
		calls = calls[1:]
		c.index[n] = calls
	}
	if len(calls) == 0 {
		return -1
	}
	return calls[0]
}
