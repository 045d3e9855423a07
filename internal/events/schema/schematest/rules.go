package schematest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"compactd/internal/events"
)

// rules are what a decoder demands beyond the types of a struct, by the path of a
// field: model.max_output_tokens, attachments[].bytes. The path "" is the payload.
type rules map[string]func(*jsonschema.Schema)

// apply changes the schema of each field that the rules name.
func (r rules) apply(s *jsonschema.Schema) error {
	for path, rule := range r {
		at := s
		for name := range strings.SplitSeq(path, ".") {
			if name == "" {
				continue
			}
			name, item := strings.CutSuffix(name, "[]")
			if at = at.Properties[name]; at == nil {
				return fmt.Errorf("rule for %s: there is no such field", path)
			}
			if item {
				at = at.Items
			}
		}
		rule(at)
	}
	return nil
}

// with joins rules; the later ones win.
func with(all ...rules) rules {
	out := rules{}
	for _, r := range all {
		maps.Copy(out, r)
	}
	return out
}

func required(names ...string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Required = names }
}

func between(low, high int64) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		s.Minimum, s.Maximum = new(float64(low)), new(float64(high))
	}
}

func least(n int64) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Minimum = new(float64(n)) }
}

// later takes fields that came within this version of the contract from those that
// are required: payloads from before are valid for ever.
func later(names ...string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return slices.Contains(names, name) })
	}
}

// text is a string without control characters, of at most most characters; the
// decoder counts bytes.
func text(most int) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.MaxLength, s.Pattern = &most, `^[^\x00-\x1f\x7f]*$` }
}

func longText(most int) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.MaxLength = &most }
}

// both applies rules to one field.
func both(all ...func(*jsonschema.Schema)) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		for _, rule := range all {
			rule(s)
		}
	}
}

func pattern(p string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Pattern = p }
}

// types are the JSON types that a raw value may have.
func types(names ...string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Types = names }
}

func described(words string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Description = words }
}

func formats(s *jsonschema.Schema) {
	s.Examples, s.Enum = nil, nil
	for _, f := range events.Formats() {
		s.Enum = append(s.Enum, string(f))
	}
	s.Enum = append(s.Enum, "")
}

// one of the fields is there and not null: any states that both may be.
func one(any bool, shapes map[string][]string, names ...string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		var each []*jsonschema.Schema
		for _, name := range names {
			each = append(each, &jsonschema.Schema{
				Required: []string{name}, Properties: map[string]*jsonschema.Schema{name: {Types: shapes[name]}},
			})
		}
		if any {
			s.AnyOf = each
		} else {
			s.OneOf = each
		}
	}
}

// noneOr: 0, which is none, or a number in between.
func noneOr(low, high float64) func(*jsonschema.Schema) {
	zero := 0.0
	return func(s *jsonschema.Schema) {
		s.Minimum, s.Maximum = &zero, &high
		s.AnyOf = []*jsonschema.Schema{{Maximum: &zero}, {Minimum: &low}}
	}
}

// onBase: a version above 1 requires the base of the turn, or the place where it branched off.
func onBase(s *jsonschema.Schema) {
	first := float64(events.Version)
	s.AnyOf = []*jsonschema.Schema{{Properties: map[string]*jsonschema.Schema{"v": {Maximum: &first}}}}
	for _, name := range []string{"expect", "forked_from"} {
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Required: []string{name}, Properties: map[string]*jsonschema.Schema{name: {Type: "object"}}})
	}
}

const (
	maxName        = 256
	idPattern      = `^[A-Za-z0-9_-]{1,64}$`
	sessionPattern = `^[A-Za-z0-9_-]{1,352}$`
	placePattern   = `@-?[0-9]{1,18}\.[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_-]{0,352}`
)

var (
	envelope = rules{"v": between(events.Version, events.Version)}
	event    = with(envelope, rules{"id": text(maxName)})
	address  = with(envelope, rules{"": required("session"), "tenant": pattern(idPattern), "session": pattern(sessionPattern)})
	page     = rules{"page": between(1, events.MaxNumber)}

	model = rules{
		"model.provider": text(maxName), "model.name": text(maxName),
		"model.max_output_tokens": between(1, events.MaxTokens), "model.context_window": between(1, events.MaxTokens),
	}
	policy = rules{"policy": types("object")}

	turnRules = with(event, model, policy, rules{
		"": both(required("messages"), onBase), "v": between(events.Version, events.VersionExpect), "generation": between(0, events.MaxNumber),
		"expect": required("digest"), "expect.turn": between(0, events.MaxNumber),
		"forked_from": required("session"), "forked_from.turn": between(0, events.MaxNumber), "forked_from.session": pattern(sessionPattern),
		"turn":          both(between(1, events.MaxNumber), described("number of the turn, counted from 1; absent is the next")),
		"replaces_from": both(between(1, events.MaxNumber), described("retracts the turns from this number on; this turn becomes that number")),
		"format":        both(formats, described("dialect of the messages; absent = unchanged")), "system": types("string", "array"), "tools": types("array"),
		"messages[]": objects,
		"usage":      described("The provider's count for the call, in the shape that the provider or the SDK gave it; another shape is not read."),
	})
	compactRules = with(event, model, policy, rules{"focus": both(longText(events.MaxFocusBytes), described("what the summary shall keep in mind"))})
	rewindRules  = with(event, rules{
		"": one(false, nullless("integer", "generation", "steps"), "generation", "steps"), "generation": between(0, events.MaxNumber), "steps": between(1, events.MaxNumber),
	})
	overflowRules = with(event, model, rules{
		"":      one(true, map[string][]string{"error": {"string", "object", "array"}, "status": {"integer"}}, "error", "status"),
		"error": types("string", "object", "array"), "status": both(between(100, 599), described("HTTP status")),
		"generation": both(between(0, events.MaxNumber), described("compaction the agent had applied when it made the call; absent is the newest")),
		"unrecorded": both(between(0, events.MaxTokens), described("for workers: the estimate of a call with a history that the session has not, as a sync answered it")),
	})
	endRules     = with(event, rules{"": described("A session.end: the session is over.")})
	forgetRules  = with(event, rules{"": both(described("A session.forget: everything of the session is erased."), closed)})
	idleRules    = with(event, rules{"": required("since"), "since": least(1)})
	branchRules  = with(event, rules{"": required("branch"), "branch": pattern(sessionPattern)})
	summaryRules = with(envelope, rules{"": summary})

	budgetRules = rules{"budget": later("percent_left", "trigger_tokens", "target_tokens", "limit_tokens"), "budget.breakdown": later("correction")}

	awaits = rules{
		"turn":    both(between(1, events.MaxNumber), described("the answer waits until this turn was taken or refused, or is parked")),
		"seq":     both(least(1), described("the answer waits until the event of this sequence was decided")),
		"wait_ms": both(between(0, events.MaxWait.Milliseconds()), described("the most to wait, in milliseconds; absent is 5000")),
	}
	contextRules = with(address, page, awaits, rules{"generation": between(0, events.MaxNumber)})
	filesRules   = with(address, page)
	previewRules = with(address, policy, rules{"": both(required("session"), closed), "focus": longText(events.MaxFocusBytes)})
	whatIfRules  = with(address, rules{"": both(required("session"), closed), "set": func(s *jsonschema.Schema) { s.MaxItems = new(events.MaxWhatIf) }})
	historyRules = with(address, rules{"limit": between(1, events.MaxHistory)})
	outcomeRules = with(address, rules{"": required("session", "seq"), "seq": least(1), "wait_ms": awaits["wait_ms"]})
	modelOf      = rules{"provider": text(maxName), "model": text(maxName), "max_output_tokens": between(1, events.MaxTokens)}
	statsRules   = with(address, modelOf, awaits)
	syncRules    = with(address, model, policy, rules{
		"": required("session", "messages"), "branch": text(maxName), "format": formats, "system": types("string", "array"), "tools": types("array"), "messages[]": objects,
		"usage":      both(types("object"), described("The provider's count for the last call, in its shape, with the view of the answer that the call was made with.")),
		"on_diverge": oneOf("auto", "replace", "branch", "refuse"), "form": oneOf("parts", "messages"), "frozen": between(0, events.MaxNumber),
		"wait_ms": both(between(0, events.MaxWait.Milliseconds()), described("the most to wait for the decision, in milliseconds; absent is 500")),
		"prefix":  required("hash"), "prefix.count": between(0, events.MaxNumber),
		"refused":       one(true, map[string][]string{"error": {"string", "object", "array"}, "status": {"integer"}}, "error", "status"),
		"refused.error": types("string", "object", "array"), "refused.status": both(noneOr(100, 599), described("HTTP status; 0 is none")), "refused.view": text(maxName),
		"forked_from": required("session"), "forked_from.turn": between(0, events.MaxNumber), "forked_from.session": pattern(sessionPattern),
	})
	compressRules = with(envelope, rules{
		"": required("messages"), "model": text(maxName), "messages[]": objects, "config": types("object"),
		"config.session_id": text(maxName), "config.mode": text(maxName), "config.frozen_message_count": between(0, events.MaxNumber),
		"token_budget": between(0, events.MaxTokens),
	})
	usageRules = with(envelope, rules{
		"": required("view", "usage"), "session": both(text(maxName), described("absent is the one of the header X-Headroom-Session-Id")),
		"view":  both(text(maxName), func(s *jsonschema.Schema) { s.MinLength = new(1) }),
		"usage": both(types("object"), described("The provider's count for the call, in its shape.")),
	})
	nextCall = with(modelOf, rules{
		"context_window": between(1, events.MaxTokens), "tokens": between(0, events.MaxTokens), "format": formats,
		"system": types("string", "array"), "tools": types("array"), "messages[]": objects,
	})
	attachRules = with(address, nextCall, policy, rules{
		"": required("session", "attachments"), "attachments": func(s *jsonschema.Schema) { s.MaxItems = new(events.MaxAttachments) },
		"attachments[]":      one(true, map[string][]string{"text": {"string"}, "bytes": {"integer"}}, "text", "bytes"),
		"attachments[].name": text(maxName), "attachments[].type": text(maxName), "attachments[].bytes": between(0, events.MaxTokens),
		"focus":      longText(events.MaxFocusBytes),
		"summary_ms": both(between(0, events.MaxSummaryWait.Milliseconds()), described("the most to wait for models that summarize files, in milliseconds; absent is 20000")),
	})
	checkRules = with(address, nextCall, awaits, rules{
		"attachments": func(s *jsonschema.Schema) { s.MaxItems = new(events.MaxAttachments) }, "attachments[]": required("bytes"),
		"attachments[].bytes": between(0, events.MaxTokens), "attachments[].type": text(maxName),
	})
	recallRules = with(address, page, rules{
		"": recall, "turn": between(1, events.MaxNumber), "index": between(0, events.MaxNumber), "text": longText(events.MaxSearchBytes),
		"limit": between(1, events.MaxHits), "before": required("turn"), "before.turn": between(1, events.MaxNumber), "before.index": between(0, events.MaxNumber),
		"ancestor": pattern(sessionPattern), "as_of": required("seq"), "as_of.turn": between(0, events.MaxNumber), "as_of.seq": least(1), "as_of.depth": between(0, events.MaxForks),
	})
	ranked = rules{
		"order": oneOf("asc", "desc"), "text": longText(events.MaxSearchBytes), "limit": between(1, events.MaxSessions),
		"partition": between(0, 1<<16-1),
	}
	sessionsRules = with(envelope, ranked, rules{
		"tenant": pattern(`^(\*|[A-Za-z0-9_-]{1,64})$`), "sort": sorts(events.SessionSorts), "level": levels,
		"after": pattern(`^([0-9]{1,5}\.[A-Za-z0-9_-]{0,352}|` + placePattern + `)?$`),
	})
	policiesRules = with(envelope, rules{"tenant": address["tenant"], "hash": text(maxName)})
	policyRules   = with(envelope, rules{"": required("policy"), "tenant": address["tenant"], "policy": longText(events.MaxPolicyBytes)})
	tenantsRules  = with(envelope, ranked, rules{"sort": sorts(events.TenantSorts), "after": pattern(`^(` + placePattern + `)?$`)})
)

// nullless are fields of one type.
func nullless(typ string, names ...string) map[string][]string {
	out := map[string][]string{}
	for _, n := range names {
		out[n] = []string{typ}
	}
	return out
}

// closed refuses fields that the decoder does not define.
func closed(s *jsonschema.Schema) {
	s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
}

// oneOf are the values of a text; "" is the first one.
func oneOf(values ...string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		s.Type, s.Examples, s.Enum = "string", nil, []any{""}
		for _, v := range values {
			s.Enum = append(s.Enum, v)
		}
	}
}

func objects(s *jsonschema.Schema) { s.Type = "object" }

// sorts and levels are the values of a text.
func sorts(all []events.Sort) func(*jsonschema.Schema) {
	return oneOf(strings.Fields(strings.Trim(fmt.Sprint(all), "[]"))...)
}

func levels(s *jsonschema.Schema) {
	oneOf(strings.Fields(strings.Trim(fmt.Sprint(events.Levels), "[]"))...)(s)
}

// recall is by place or by text.
func recall(s *jsonschema.Schema) {
	required("session")(s)
	one(false, map[string][]string{"turn": {"integer"}, "text": {"string"}}, "turn", "text")(s)
	s.Properties["text"].Pattern = `\S`
}

// summary requires a text, or the reason for its absence.
func summary(s *jsonschema.Schema) {
	s.Required = []string{"job"}
	s.Properties["job"].MinLength = new(1)
	for _, f := range []struct{ name, pattern string }{{"text", `\S`}, {"failure", `.`}} {
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{
			Required: []string{f.name}, Properties: map[string]*jsonschema.Schema{f.name: {Type: "string", Pattern: f.pattern}},
		})
	}
}
