package compaction_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/stored"
)

// The scripts under testdata say what the package does with sessions; go test
// -rewrite writes what it does now. Commands:
//
//	session window= reserve= provider= model= format= ids=off system= tools= policy= profile= locked=
//	add                     a turn, taken without a decision
//	turn n= times= from= model= window= reserve= provider= format= policy= usage= input= output= generation=
//	summary job= units= | summary job= fail      a result; jobs count from 1; by= input= output= what it cost
//	compact focus= policy= window= reserve= | rewind generation= | rewind steps=
//	overflow limit= actual= generation= | idle since= | end                what is requested of the session
//	time DURATION           passes in the log
//	restart                 the ledger is stored and restored
//	stats provider= model= reserve=            with arguments, for another model
//	calibration
//	pending provider= model= reserve= system= tools= current= files= images=
//	view generation=        the history as it stands, or as a generation has it
//	plan STAGE target= protect= minimum= share= fraction= bytes= direction=
//	render                  the history of the last plan or decision
//	check system= history= current= tools= files= window= reserve= policy=
//	estimate profile= provider= text= units= | window provider= model= over= | reserve window= max=
//
// The lines of session, add and turn are messages: system, user and assistant with
// a text, tokens= and lines=; tool NAME PATH tokens= id= offset= limit= failed, a call and
// its result; calls NAME PATH; NAME PATH, calls of one message, and result NAME
// PATH, a result of the oldest call of that description, or of id=; served NAME PATH
// tokens= id= half= words= cites!, a call that the provider carries out and its result, or one
// of them, and words behind them, which may cite a result.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Ext(path) != ".txt" {
			return
		}
		s := &script{}
		datadriven.RunTest(t, path, s.run)
	})
}

// script is the state of one script.
type script struct {
	*agent
	header object // of the next turn
	format events.Format
	noIDs  bool
	calls  []call // without a result so far
	called int
	view   *render.View // of the last plan or decision
	jobs   []string     // ids
	stored []compaction.Row
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	a := args{t, d}
	switch d.Cmd {
	case "estimate":
		return a.estimate()
	case "window":
		return a.window()
	case "reserve":
		return fmt.Sprint(measure.OutputReserve(a.tokens("window"), a.tokens("max")))
	case "check":
		return a.check()
	case "session":
		s.begin(t, a)
		if d.Input != "" {
			s.add(d.Input)
		}
		return s.state()
	}
	s.t = t
	switch d.Cmd {
	case "add":
		s.add(d.Input)
		return s.state()
	case "turn":
		return s.turn(a)
	case "summary":
		return s.summary(a)
	case "compact", "rewind", "idle", "end", "forget":
		r, err := stored.ReadRequest(events.Kind(d.Cmd), s.requested(a), s.at())
		return s.request(r, err)
	case "overflow":
		o := compaction.Overflow{Limit: a.tokens("limit"), Actual: a.tokens("actual"), Output: a.tokens("output"), Generation: -1}
		if d.HasArg("model") {
			o.Model = &events.Model{Provider: a.text("provider"), Name: a.text("model")}
		}
		if d.HasArg("refused") {
			o.Refused = events.NewInvalid(events.CodeNotOverflow, "error", "is "+a.text("refused"))
		}
		if d.HasArg("generation") {
			o.Generation = a.number("generation")
		}
		return s.request(compaction.NewOverflow(o, "", s.at()), nil)
	case "time":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		s.now += by.Milliseconds()
		return ""
	case "restart":
		rows, err := stored.Rows(s.ledger)
		if err != nil {
			t.Fatal(err)
		}
		if s.ledger, err = stored.ReadLedger(s.ledger.Address, append(s.stored, rows...)); err != nil {
			t.Fatal(err)
		}
		s.stored = append(s.stored, rows...)
		compaction.Apply(s.ledger, nil, nil, s.config)
		return s.state()
	case "calibration":
		return s.ledger.Calibration()
	case "stats":
		st, err := s.ledger.Stats(s.config, a.model())
		if err != nil {
			return err.Error()
		}
		if len(d.CmdArgs) > 0 {
			return fmt.Sprintf("%s left=%d%%", budgetLine(st.Budget), st.Budget.PercentLeft)
		}
		again := ""
		if st.Repeated != (measure.Repeated{}) {
			again = fmt.Sprintf(" rereads=%d reruns=%d", st.Repeated.Rereads, st.Repeated.Reruns)
		}
		if st.Cost.Lost+st.Cost.Saved+st.Cost.Summaries > 0 {
			again += fmt.Sprintf(" lost=%d saved=%d summaries=%d", st.Cost.Lost, st.Cost.Saved, st.Cost.Summaries)
		}
		if made := s.ledger.Describe(s.config).Summaries; made != (events.SummaryCounts{}) {
			again += fmt.Sprintf(" ready=%d late=%d failed=%d", made.Ready, made.Late, made.Failed)
		}
		if n := st.Cost.Unpriced; n > 0 {
			again += fmt.Sprintf(" unpriced=%d", n)
		}
		return fmt.Sprintf("generation=%d messages=%d prepared=%v waiting=%v %s%s", st.Generation, st.Messages, st.Prepared, st.Waiting, s.state(), again)
	case "pending":
		return s.pending(a)
	case "plan":
		return s.plan(a)
	case "render":
		return s.rendered()
	case "view":
		s.view = s.ledger.View()
		if d.HasArg("generation") {
			s.view = s.ledger.ViewAt(a.number("generation"))
		}
		return s.rendered()
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
		return ""
	}
}

// args are the key=value pairs of a directive.
type args struct {
	t *testing.T
	d *datadriven.TestData
}

func (a args) text(key string) string {
	for _, x := range a.d.CmdArgs {
		if x.Key == key && len(x.Vals) > 0 {
			return strings.Join(x.Vals, ",")
		}
	}
	return ""
}

func (a args) number(key string) int64 {
	v := a.text(key)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		a.t.Fatalf("%s: %v", a.d.Pos, err)
	}
	return n
}

func (a args) tokens(key string) measure.Tokens { return measure.Tokens(a.number(key)) }

func (a args) estimate() string {
	r := measure.NewRate(measure.Profiles[a.text("profile")], a.text("provider"))
	var out []string
	for line := range strings.Lines(a.d.Input) {
		line = strings.TrimSuffix(line, "\n")
		out = append(out, fmt.Sprintf("%d units: %d tokens", codec.Units(line), r.Count(line)))
	}
	return strings.Join(out, "\n")
}

// window looks a model up, over a table of overrides.
func (a args) window() string {
	var over measure.Windows
	if v := a.text("over"); v != "" {
		if err := codec.Unmarshal([]byte(v), &over); err != nil {
			a.t.Fatalf("%s: %v", a.d.Pos, err)
		}
	}
	table, err := measure.DefaultWindows().With(over)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(table.Table().Window(a.text("provider"), a.text("model")))
}

func (a args) model() events.Model {
	return events.Model{Provider: a.text("provider"), Name: a.text("model"), MaxOutputTokens: a.number("reserve")}
}

func (a args) check() string {
	p := withoutSummaries()
	if v := a.text("policy"); v != "" {
		var err error
		if p, err = p.With(codec.Raw(v)); err != nil {
			return err.Error()
		}
	}
	b := checkBudget(measure.Prompt{
		System: a.tokens("system"), History: a.tokens("history"), Current: a.tokens("current"),
		Tools: a.tokens("tools"), Files: a.tokens("files"),
	}, a.tokens("window"), a.tokens("reserve"), &p)
	return fmt.Sprintf("%s within=%v compact=%v", budgetLine(b), b.WithinBudget, b.ShouldCompact)
}

// checkBudget is the budget with what the policy leaves of an output reserve.
func checkBudget(p measure.Prompt, window, reserve measure.Tokens, policy *policy.Policy) events.Budget {
	reserve = policy.Reserve(reserve)
	m := policy.Thresholds(window, reserve, p.Fixed, window)
	return m.BudgetOf(p, window, policy)
}

func budgetLine(b events.Budget) string {
	return fmt.Sprintf("tokens=%d of %d ratio=%d.%04d level=%s",
		b.EstimatedInput, b.AvailableInput, b.UsagePPM/1_000_000, b.UsagePPM%1_000_000/100, b.Level)
}

// begin starts a session; what its first turn has besides messages waits for it.
func (s *script) begin(t *testing.T, a args) {
	p := withoutSummaries()
	p.Profile = cmp.Or(a.text("profile"), "plain")
	p.Summarize.Enabled = a.text("summaries") == "on"
	if v := a.text("locked"); v != "" {
		p.Locked = strings.Split(v, ",")
	}
	*s = script{
		agent: newAgent(t, configOf(t, p)), header: object{},
		format: events.Format(a.text("format")), noIDs: a.text("ids") == "off",
	}
	if s.format == "" {
		s.format = events.DefaultFormat(&events.Model{Provider: a.text("provider"), Name: a.text("model")})
	}
	s.set(a)
}

// set puts the envelope's fields into the header of the next turn.
func (s *script) set(a args) {
	model := object{"provider": a.text("provider"), "name": a.text("model")}
	if n := a.number("window"); n > 0 {
		model["context_window"] = n
	}
	if n := a.number("reserve"); n > 0 {
		model["max_output_tokens"] = n
	}
	if a.text("provider")+a.text("model") != "" || len(model) > 2 {
		s.header["model"] = model
	}
	for _, key := range []string{"format", "id"} {
		if v := a.text(key); v != "" {
			s.header[key] = v
		}
	}
	for _, key := range []string{"policy", "usage", "tools"} {
		if v := a.text(key); v != "" {
			s.header[key] = codec.Raw(v)
		}
	}
	if n := a.number("input"); n > 0 {
		s.header["usage"] = object{"input_tokens": n, "output_tokens": a.number("output")}
	}
	if n := a.number("generation"); n > 0 {
		s.header["generation"] = n
	}
	if n := a.tokens("system"); n > 0 {
		s.header["system"] = words(s.rate(), n, "")
	}
	if f := a.text("format"); f != "" {
		s.format = events.Format(f)
	}
}

// rate is that of the next turn.
func (s *script) rate() measure.Rate {
	if m, ok := s.header["model"].(object); ok {
		provider, _ := m["provider"].(string)
		return measure.NewRate(measure.Profiles[s.config.Policy.Profile], provider)
	}
	if s.ledger.LastTurn() == 0 {
		return measure.NewRate(measure.Profiles[s.config.Policy.Profile], "")
	}
	return s.ledger.Rate()
}

// next is the turn of the given lines.
func (s *script) next(lines string) object {
	turn, r := s.header, s.rate()
	s.header = object{}
	if s.ledger.LastTurn() == 0 && turn["format"] == nil {
		turn["format"] = s.format
	}
	msgs := []codec.Raw{}
	for line := range strings.Lines(lines) {
		for _, m := range s.parse(strings.TrimSpace(line), r) {
			msgs = append(msgs, m.raws(s.format)...)
		}
	}
	turn["messages"] = msgs
	return turn
}

// parse reads one line of the script.
func (s *script) parse(line string, r measure.Rate) []msg {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "tool":
		c, opt := s.call(rest)
		return []msg{{role: dialect.RoleAssistant, calls: []call{c}}, s.result(c, opt, r)}
	case "served":
		c, opt := s.call(rest)
		m := msg{role: dialect.RoleAssistant, text: opt["words"], cites: opt["cites"] != "", served: []served{{c, padded("", opt, r), opt["half"]}}}
		if c.tool == "" {
			m.served = nil
		}
		return []msg{m}
	case "calls":
		var calls []call
		for one := range strings.SplitSeq(rest, ";") {
			c, _ := s.call(strings.TrimSpace(one))
			calls = append(calls, c)
			s.calls = append(s.calls, c)
		}
		return []msg{{role: dialect.RoleAssistant, calls: calls}}
	case "result":
		c, opt := s.call(rest)
		s.called--
		if i := slices.IndexFunc(s.calls, func(x call) bool { return x.tool == c.tool && x.args == c.args }); i >= 0 && opt["id"] == "" {
			c = s.calls[i]
			s.calls = slices.Delete(s.calls, i, i+1)
		}
		return []msg{s.result(c, opt, r)}
	default:
		text, opt := options(rest)
		return []msg{{role: dialect.Role(verb), text: padded(text, opt, r)}}
	}
}

// options splits a line into words and key=value pairs; a word that ends in ! is
// an option of its own.
func options(line string) (string, map[string]string) {
	opt := map[string]string{}
	var text []string
	for w := range strings.FieldsSeq(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			opt[k] = v
		} else if k, ok := strings.CutSuffix(w, "!"); ok {
			opt[k] = "true"
		} else {
			text = append(text, w)
		}
	}
	return strings.Join(text, " "), opt
}

func padded(text string, opt map[string]string, r measure.Rate) string {
	if n, err := strconv.Atoi(opt["units"]); err == nil { // of one character
		return text + strings.Repeat(cmp.Or(opt["of"], "x"), n)
	}
	if opt["tokens"] == "" {
		return text
	}
	n, _ := strconv.Atoi(opt["tokens"])
	text = words(r, measure.Tokens(n), text)
	if lines, err := strconv.Atoi(opt["lines"]); err == nil { // of about the same length
		b := []byte(text)
		for i := 1; i < lines; i++ {
			b[i*len(b)/lines] = '\n'
		}
		text = string(b)
	}
	return text
}

// call describes a call: a tool, its subject, and offset= and limit= of a read.
func (s *script) call(line string) (call, map[string]string) {
	text, opt := options(line)
	tool, subject, _ := strings.Cut(text, " ")
	in := object{"path": subject}
	for _, k := range []string{"offset", "limit"} {
		if n, err := strconv.Atoi(opt[k]); err == nil {
			in[k] = n
		}
	}
	if opt["command"] != "" {
		in["command"] = strings.ReplaceAll(opt["command"], "!", " ")
	}
	s.called++
	c := call{id: opt["id"], tool: tool, args: string(raws(in)[0])}
	if c.id == "" && !s.noIDs {
		c.id = fmt.Sprintf("c%d", s.called)
	}
	return c, opt
}

func (s *script) result(c call, opt map[string]string, r measure.Rate) msg {
	return msg{role: dialect.RoleTool, results: []result{
		{id: c.id, tool: c.tool, text: padded("", opt, r), failed: opt["failed"] != ""},
	}}
}

// add takes a turn without deciding on it.
func (s *script) add(lines string) {
	t, err := s.read(s.next(lines))
	if err != nil {
		s.t.Fatal(err)
	}
	compaction.Apply(s.ledger, t, nil, s.config)
}

func (s *script) state() string {
	if s.ledger.LastTurn() == 0 {
		return "no turn"
	}
	return budgetLine(s.ledger.Budget())
}

// turn decides on a turn and applies it.
func (s *script) turn(a args) string {
	var out []string
	for i := range max(1, a.number("times")) {
		if now := s.one(a, i); len(out) == 0 || out[len(out)-1] != now {
			out = append(out, now)
		}
	}
	return strings.Join(out, "\n")
}

// one is the i-th of the turns of a command.
func (s *script) one(a args, i int64) string {
	s.set(a)
	from := a.number("from")
	turn := s.next(a.d.Input)
	switch {
	case from > 0:
		turn["turn"], turn["replaces_from"] = from, from
	case a.text("n") == "":
		turn["turn"] = s.ledger.LastTurn() + 1
	case a.text("n") != "none":
		turn["turn"] = a.number("n") + i
	}
	return s.report(s.publish(turn))
}

// summary is the result of a job.
func (s *script) summary(a args) string {
	n := int(a.number("job"))
	if n < 1 || n > len(s.jobs) {
		return "no such job"
	}
	job := s.jobs[n-1]
	answer := summary(job, a.number("units"))
	if a.d.HasArg("fail") {
		answer = failure(job)
	}
	answer.Model, answer.Usage = a.text("by"), events.SummaryUsage{Input: a.number("input"), Output: a.number("output")}
	r := s.agent.result(answer)
	outs, next := compaction.Decide(s.ledger, r, s.config)
	next.Install(s.ledger)
	return s.report(outs)
}

// at is the next sequence of the log.
func (s *script) at() measure.Seq {
	s.seq++
	return s.seq
}

// requested is the payload of a request.
func (s *script) requested(a args) []byte {
	body := object{"id": fmt.Sprintf("request-%d", s.seq+1)}
	if a.d.Cmd == "idle" && s.ledger.LastTurn() > 0 {
		body["since"] = s.ledger.LastSeq()
		if n := a.number("since"); n > 0 {
			body["since"] = n
		}
	}
	for _, key := range []string{"generation", "steps"} {
		if v := a.text(key); v != "" {
			body[key] = a.number(key)
		}
	}
	if v := a.text("focus"); v != "" {
		body["focus"] = v
	}
	if v := a.text("policy"); v != "" {
		body["policy"] = codec.Raw(v)
	}
	if n := a.number("window"); n > 0 {
		body["model"] = object{"context_window": n, "max_output_tokens": a.number("reserve")}
	}
	return raws(body)[0]
}

// request decides on what is requested of the session, and applies it.
func (s *script) request(r *compaction.Request, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	r.Time = s.now
	outs, next := compaction.Decide(s.ledger, r, s.config)
	next.Install(s.ledger)
	return s.report(outs)
}

func (s *script) report(outs []compaction.Outcome) string {
	var out []string
	for _, o := range outs {
		out = append(out, s.outcome(o)+notes(o))
		if o.View != nil {
			s.view = o.View
		}
	}
	if out == nil {
		return "nothing emitted; " + s.state()
	}
	return strings.Join(out, "\n")
}

// notes are lines beside an outcome.
func notes(o compaction.Outcome) (out string) {
	for _, n := range events.NotesOf(o.Body) {
		out += fmt.Sprintf("\n  note %s: %s", n.Code, strings.Join(n.Fields, ", "))
		if n.Code == events.CodeUsageUnknown {
			out += ": " + n.Message
		}
		if n.Turn > 0 {
			out += fmt.Sprintf(", of turn %d", n.Turn)
		}
	}
	return out
}

func (s *script) outcome(o compaction.Outcome) string {
	switch b := o.Body.(type) {
	case *events.Rejected:
		out := fmt.Sprintf("rejected %s: %s", b.Code, b.Message)
		if b.Expected > 0 {
			out += fmt.Sprintf(" expected=%d", b.Expected)
		}
		return out
	case *events.Job:
		s.jobs = append(s.jobs, b.ID)
		out := fmt.Sprintf("job %d %s: %s to %s, turns from %d at %v, at most %d units",
			len(s.jobs), b.Lane, place(b.From), place(b.To), b.Turn, b.Seqs, b.MaxUnits)
		if b.Manual != nil {
			out += fmt.Sprintf(", for %s, focus %q", b.Manual.ID, b.Focus)
		}
		if b.Previous != 0 {
			out += fmt.Sprintf(", previous at %d to %s", b.Previous, place(*b.PreviousTo))
		}
		return out
	case *events.Forgotten:
		return fmt.Sprintf("erased up to %d", b.Seq)
	case *events.BudgetChanged:
		return "budget " + budgetLine(b.Budget)
	case *events.Compacted:
		if got := s.ledger.Budget(); got != b.Budget {
			return fmt.Sprintf("the ledger has %+v, the outcome %+v", got, b.Budget)
		}
		if !b.Compacted {
			return fmt.Sprintf("not compacted: %s%s; %s", b.Code, request(b), budgetLine(b.Budget))
		}
		out := fmt.Sprintf("compacted generation=%d reason=%s%s through=%d %d -> %d target=%d; %s",
			b.Generation, b.Reason, request(b), b.Through.Turn, b.TokensBefore, b.TokensAfter, b.TargetTokens, budgetLine(b.Budget))
		if b.Code != "" {
			out += " " + string(b.Code)
		}
		return out + stageLines(b.Stages) + editLines(b.Edits)
	}
	return "?"
}

// request returns which request an outcome answers, or what a rewind went back to.
func request(b *events.Compacted) string {
	switch {
	case b.Request != nil:
		return ", for " + b.Request.ID
	case b.RewoundTo != nil:
		return fmt.Sprintf(" to %d", *b.RewoundTo)
	default:
		return ""
	}
}

func stageLines(stages []events.StageReport) (out string) {
	for _, r := range stages {
		out += fmt.Sprintf("\n  %s: %d -> %d, %d edits", r.Name, r.TokensBefore, r.TokensAfter, r.Edits)
	}
	return out
}

func place(p events.Position) string {
	s := fmt.Sprintf("%d.%d", p.Turn, p.Index)
	if p.Part > 0 {
		s += fmt.Sprintf(".%d", p.Part)
	}
	return s
}

func editLines(edits []events.Edit) (out string) {
	for _, e := range edits {
		out += fmt.Sprintf("\n  %s %s", e.Op, place(e.Position))
		if e.To != nil {
			out += " to " + place(*e.To)
		}
		if e.Op == events.OpTrim || e.Op == events.OpRestore {
			out += strings.TrimSuffix(fmt.Sprintf(": at most %d units %s", e.Units, e.Direction), " ")
		}
	}
	return out
}

// pending compares the next call with the window.
func (s *script) pending(a args) string {
	next := compaction.Pending{
		Model: a.model(), System: a.number("system"), Tools: a.number("tools"), Prompt: a.number("current"), Images: a.number("images"),
	}
	if n := a.number("files"); n > 0 {
		next.Files = []int64{n}
	}
	b, err := s.ledger.Check(s.config, next)
	if err != nil {
		return err.Error()
	}
	x := b.Breakdown
	return fmt.Sprintf("%s within=%v compact=%v; system=%d history=%d current=%d tools=%d files=%d", budgetLine(b), b.WithinBudget, b.ShouldCompact,
		x.SystemPrompt, x.History, x.CurrentPrompt, x.ToolDefinitions, x.FileAttachments)
}

// plan runs the stages, or one alone, on what is in view, and shows each entry
// that changed.
func (s *script) plan(a args) string {
	p := s.ledger.Policy()
	only := a.d.CmdArgs[0].Key
	p.Prune.Enabled = only == "all" || only == "prune" || only == "micro"
	p.Prune.Micro.Enabled = p.Prune.Micro.Enabled || only == "micro"
	p.Deduplicate.Enabled = only == "all" || only == "deduplicate"
	p.Truncate.Enabled = only == "all" || only == "truncate"
	if n := a.number("bytes"); n > 0 {
		p.ToolOutput.MaxBytes, p.ToolOutput.Direction = n, measure.Direction(a.text("direction"))
	}
	if a.text("protect") != "" {
		p.Prune.ProtectTokens, p.Prune.ScaleBelow = a.tokens("protect"), 0
	}
	if a.text("minimum") != "" {
		p.Prune.MinimumTokens, p.Prune.ScaleBelow = a.tokens("minimum"), 0
	}
	if n := a.number("share"); n > 0 {
		p.Deduplicate.Minimum = measure.PPM(n * 10_000)
	}
	if n := a.number("fraction"); n > 0 {
		p.Truncate.Fraction = measure.PPM(n * 10_000)
	}
	before := s.ledger.Visible()
	plan := makePlan(slices.Clone(before), s.format, s.ledger.Rate(), &p, s.ledger.Window(), a.tokens("target"))
	s.view = planView(plan, s.format)
	return fmt.Sprintf("%d -> %d", plan.Before, plan.After) + stageLines(plan.Stages) + editLines(plan.Edits) + s.changes(before)
}

// changes lists the entries that a plan made smaller.
func (s *script) changes(before []measure.Entry) (out string) {
	r := s.ledger.Rate()
	was := map[events.Position]measure.Tokens{}
	for i := range before {
		was[before[i].Position()] = r.Body(&before[i])
	}
	for _, e := range s.view.Entries {
		if old, now := was[e.Position()], r.Body(&e); e.Kind != measure.KindTruncation && now != old {
			out += fmt.Sprintf("\nentry %d.%d.%d: %d -> %d", e.Turn, e.Index, e.Part, old, now)
		}
	}
	return out
}

// rendered shows the history of the last view.
func (s *script) rendered() string {
	raw, err := s.render(s.view)
	if err != nil {
		return "error: " + err.Error()
	}
	msgs, err := s.format.ReadAll(raw)
	if err != nil {
		return "error: " + err.Error()
	}
	var out []string
	for _, m := range msgs {
		var parts []string
		for _, p := range m.Parts {
			parts = append(parts, shape(p))
		}
		out = append(out, string(m.Role)+": "+strings.Join(parts, ", "))
	}
	verdict := "valid"
	for _, v := range validate.Messages(s.format, raw) {
		verdict = "INVALID"
		out = append(out, v.String())
	}
	return strings.Join(append(out, verdict), "\n")
}

func shape(p dialect.Part) string {
	switch p.Kind {
	case dialect.PartCall:
		return fmt.Sprintf("call %s %s %s", p.CallID, p.Tool, p.Args)
	case dialect.PartResult:
		return fmt.Sprintf("result %s %q", p.CallID, short(p.Text))
	case dialect.PartOther:
		return servedShapes[p.Hosted.Kind]
	default:
		if p.Hosted.Kind == dialect.HostedCites {
			return fmt.Sprintf("%q with citations", short(p.Text))
		}
		return fmt.Sprintf("%q", short(p.Text))
	}
}

var servedShapes = map[dialect.HostedKind]string{0: `""`, dialect.HostedCall: "served call", dialect.HostedResult: "served result"}

// short keeps the head of a text, placeholders and notices whole.
func short(s string) string {
	emitted := notice.FindAllString(s, -1)
	switch {
	case len(emitted) > 0:
		return fmt.Sprintf("%s... %d with %s", strings.TrimLeft(s, "\n")[:12], codec.Units(s), strings.Join(emitted, " "))
	case len(s) <= 24 || strings.HasPrefix(s, "["):
		return s
	default:
		return fmt.Sprintf("%s... %d", s[:12], len(s))
	}
}

// notice finds what a text that was cut or restored reports of it.
var notice = regexp.MustCompile(`\[(?:Content cut|Output truncated|The whole output|\.\.\. \d+ bytes omitted|Restored after)[^\]]*\]`)
