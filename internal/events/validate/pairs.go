package validate

// blockPairs checks that each call has its result in the next message, in a dialect of blocks.
type blockPairs struct {
	*checker
	call           string // name of a call
	dialect        string
	last           int             // index of the last message
	before         blockTools      // of the message before
	seen, answered map[string]bool // ids of calls, and of results
}

// add checks message i against the one before.
func (p *blockPairs) add(i int, now blockTools) {
	for _, id := range now.calls.list {
		if p.seen[id] {
			p.report("duplicate_call_id", i, "an earlier %s has the same id", p.call)
		}
		p.seen[id] = true
	}
	for _, id := range now.results.list {
		switch {
		case p.answered[id]:
			p.report("duplicate_result", i, "the %s has a result already", p.call)
		case !p.before.calls.has(id):
			p.report("orphan_result", i, "the message before has no %s of this id", p.call)
		}
		p.answered[id] = true
	}
	awaiting := !p.sent && i == p.last && len(now.results.list) > 0 && !now.other
	for _, id := range p.before.calls.list {
		answered := now.results.has(id)
		if !awaiting && !answered {
			p.report("call_answered", i-1, "the next message has no result of a %s", p.call)
		}
		if !awaiting || answered { // results of the others come under their ids still
			p.idTaken(i-1, p.dialect, id)
		}
	}
	p.before = now
}

// end checks the last message.
func (p *blockPairs) end() {
	if p.sent && len(p.before.calls.list) > 0 {
		p.report("call_answered", p.last, "there is no result of a %s", p.call)
	}
}

// lastCalls are the calls of the last assistant message, in a dialect of messages with results.
type lastCalls struct {
	index    int
	ids      ids
	answered map[string]bool
}

// result checks a result against the calls, under an id that is not empty.
func (c *checker) result(i int, id string, calls *lastCalls) {
	switch {
	case !calls.ids.has(id):
		c.report("orphan_result", i, "the assistant before has no call of this id")
	case calls.answered[id]:
		c.report("duplicate_result", i, "the call has a result already")
	default:
		calls.answered[id] = true
	}
}

// allAnswered is called when another role follows: at the end of a history calls may be open.
func (c *checker) allAnswered(calls *lastCalls) {
	for _, id := range calls.ids.list {
		if !calls.answered[id] {
			c.report("call_answered", calls.index, "another role speaks before the result of a call")
		}
	}
}
