package events

// usage reads what a provider counted for one call. It is nil and true for a
// shape of no known provider, which is no problem of the turn; nil and false
// when there is none, or when all counts are zero.
func (e *envelope) usage() (u *Usage, unknown bool) {
	v, ok := e.take("usage")
	if !ok {
		return nil, false
	}
	var room [fewMembers]member
	ms, err := appendMembers(room[:0], v)
	if err != nil {
		return nil, true
	}
	before := len(e.problems)
	c := counts{e, "usage.", ms}
	switch {
	case c.any("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount"): // Gemini
		u = inclusive(c.count("promptTokenCount"), c.count("cachedContentTokenCount"))
		u.Output = c.count("candidatesTokenCount") + c.count("thoughtsTokenCount")
	case c.any("prompt_tokens", "completion_tokens"): // OpenAI chat completions
		u = inclusive(c.count("prompt_tokens"), c.detail("prompt_tokens_details").count("cached_tokens"))
		u.Output = c.count("completion_tokens")
	case c.any("input_tokens_details"): // OpenAI responses
		u = inclusive(c.count("input_tokens"), c.detail("input_tokens_details").count("cached_tokens"))
		u.Output = c.count("output_tokens")
	case c.any("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"): // Anthropic
		u = &Usage{
			Input:       c.count("input_tokens"),
			CacheRead:   c.count("cache_read_input_tokens"),
			CacheCreate: c.count("cache_creation_input_tokens"),
			Output:      c.count("output_tokens"),
		}
	default:
		return nil, true
	}
	if len(e.problems) > before || *u == (Usage{}) {
		return nil, false
	}
	return u, false
}

// inclusive is for providers whose input counts the cached tokens too. Where
// more is cached than sent, a proxy has counted them apart.
func inclusive(input, cached int64) *Usage {
	if cached <= input {
		input -= cached
	}
	return &Usage{Input: input, CacheRead: cached}
}

// counts are the members of a usage, or of an object within it.
type counts struct {
	env     *envelope
	field   string // its name, with a dot behind it
	members []member
}

// any reports whether one of the names is there and not null.
func (c counts) any(names ...string) bool {
	for _, name := range names {
		if v := lookup(c.members, name); v != nil && v.Kind() != 'n' {
			return true
		}
	}
	return false
}

// count returns a number of tokens, 0 when it is absent or null.
func (c counts) count(name string) int64 {
	v := c.take(name)
	if v == nil {
		return 0
	}
	return c.env.countOf(c.field, name, v, 0, MaxTokens)
}

// detail returns the object of that name, empty when it is absent or null.
func (c counts) detail(name string) counts {
	d := counts{env: c.env, field: c.field + name + "."}
	v := c.take(name)
	if v == nil {
		return d
	}
	var err error
	if d.members, err = members(v); err != nil {
		c.env.problems.add(CodeBadType, c.field+name, "must be an object")
	}
	return d
}

func (c counts) take(name string) Raw {
	n := 0
	for _, m := range c.members {
		if m.name == name {
			n++
		}
	}
	if n > 1 {
		c.env.problems.add(CodeDuplicateKey, c.field+name, "occurs twice")
	}
	v := lookup(c.members, name)
	if v.Kind() == 'n' {
		return nil
	}
	return v
}
