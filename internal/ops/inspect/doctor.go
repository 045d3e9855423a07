package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/request"
	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/disk"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

// Level states what a finding is.
type Level string

// Levels of findings.
const (
	LevelOK      Level = "ok"
	LevelNote    Level = "note"    // worth knowing; nothing is wrong
	LevelProblem Level = "problem" // something to repair
)

// Finding is the result of one check.
type Finding struct {
	Level   Level       `json:"level"`
	Check   string      `json:"check"`         // as docs/operations.md lists them
	Code    events.Code `json:"code,omitzero"` // forbidden, unavailable: the check could not be made; storage_limit: a stream could not
	Message string      `json:"message"`
	Hint    string      `json:"hint,omitzero"` // what to do
	Figures
}

// Figures are the exact numbers behind a message, for programs; 0 for what it does
// not speak of.
type Figures struct {
	Bytes      uint64 `json:"bytes,omitzero"`       // that are held, or may come
	FreeBytes  uint64 `json:"free_bytes,omitzero"`  // of SizeBytes
	SizeBytes  uint64 `json:"size_bytes,omitzero"`  // that there may be
	AgeSeconds int64  `json:"age_seconds,omitzero"` // that messages are kept, or the oldest copy has
}

// Diagnosis is the result of [Diagnose].
type Diagnosis struct {
	Findings []Finding `json:"findings"`
}

// Healthy reports that there is no problem.
func (d *Diagnosis) Healthy() bool {
	return !slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.Level == LevelProblem })
}

// Target states what is examined.
type Target struct {
	// Conn is a connection to the server; nil when there is none, for the reason
	// Unreachable.
	Conn        *nats.Conn
	Unreachable error
	// Hint is the remedy. Default: to start a worker.
	Hint string
	// Refusals are those of Conn.
	Refusals *Refusals
	// Data is the worker's data directory.
	Data string
	// Dial connects to a server as a user without a password; nil for no check of that. See [DialAs].
	Dial func(ctx context.Context, url, user string) (*nats.Conn, error)
	// ServerFiles are configuration files of nats-server.
	ServerFiles []string
	// HTTP is a worker's address for operators, and Token what it takes; "" for no check of that.
	HTTP, Token string
	// Now is the clock of this machine. Default [time.Now].
	Now func() time.Time
}

// Bounds below which there is no problem.
const (
	minPayload = 8 << 20 // bytes; a turn of 4 MiB and a page of an answer must fit
	maxSkew    = 2 * time.Second
	longWait   = time.Minute // for an event to be decided
	// Workers checkpoint each second and copy every five minutes by default.
	longCheckpoint = 10 * time.Minute
	longSnapshot   = time.Hour
	lately         = time.Hour // for rejections
	// fileWait is the time after which a locked file counts as in use.
	fileWait = 50 * time.Millisecond
)

// doctor collects findings.
type doctor struct {
	Target
	Diagnosis
}

// Diagnose checks the server, its streams, the clocks, the disk and the ledger
// files.
func Diagnose(ctx context.Context, p Target) *Diagnosis {
	if p.Now == nil {
		p.Now = time.Now
	}
	d := &doctor{Target: p}
	var streams *topology.Streams
	if p.Conn == nil {
		d.problem("server", cmp.Or(p.Hint, "start a worker, or say --nats")+"; streams, durability and clock were not checked", "%s: %v", unreached(p.Unreachable), p.Unreachable)
	} else {
		streams = d.server(ctx)
	}
	d.serverFiles()
	d.directories()
	d.disk(streams)
	d.files(streams)
	return &d.Diagnosis
}

// unreached states what a failed connection means.
func unreached(err error) string {
	e, ok := errors.AsType[*connect.Error](err)
	switch {
	case ok && e.Cause == connect.CauseUser:
		return "the server refuses this user"
	case ok && e.Cause == connect.CauseOther:
		return "there is no NATS server"
	default:
		return "no server answers"
	}
}

func (d *doctor) add(l Level, check, hint, format string, v ...any) {
	d.Findings = append(d.Findings, Finding{Level: l, Check: check, Message: fmt.Sprintf(format, v...), Hint: hint})
}

// figures adds the exact numbers of the last finding.
func (d *doctor) figures(f Figures) { d.Findings[len(d.Findings)-1].Figures = f }

func (d *doctor) ok(check, format string, v ...any) { d.add(LevelOK, check, "", format, v...) }

func (d *doctor) note(check, hint, format string, v ...any) {
	d.add(LevelNote, check, hint, format, v...)
}

func (d *doctor) problem(check, hint, format string, v ...any) {
	d.add(LevelProblem, check, hint, format, v...)
}

// server checks what can be requested over the connection.
func (d *doctor) server(ctx context.Context) *topology.Streams {
	d.ok("server", "%s, version %s", d.Conn.ConnectedUrlRedacted(), d.Conn.ConnectedServerVersion())
	if got := connect.MaxPayload(d.Conn); got < minPayload {
		d.note("server", "set max_payload: 8MB", "max_payload is %s: larger turns do not reach the server, larger histories are published without messages", units.Bytes(got))
		d.figures(Figures{Bytes: uint64(got)})
	}
	js, err := jetstream.New(d.Conn)
	if err != nil {
		d.problem("server", "", "%v", err)
		return nil
	}
	var s *topology.Inspection
	d.ask(ctx, "streams", func(ctx context.Context) { s = d.inspect(ctx, js) })
	if s == nil {
		return nil
	}
	d.streams(s)
	d.ask(ctx, "tenants", func(ctx context.Context) { d.tenants(ctx, js, s.Outcomes) })
	d.durability(s)
	d.ask(ctx, "markers", func(ctx context.Context) { d.markers(ctx, js, s.Streams) })
	d.ask(ctx, "partitions", func(ctx context.Context) { d.partitions(ctx, js, s.Streams) })
	d.growth(s.Streams)
	d.ask(ctx, "rejections", func(ctx context.Context) { d.rejections(ctx, js) })
	d.ask(ctx, "outcomes", func(ctx context.Context) { d.foreign(ctx, js, s.Streams) })
	d.ask(ctx, "snapshots", func(ctx context.Context) { d.snapshots(ctx, js, s.Streams) })
	d.ask(ctx, "budgets", d.budgets)
	d.ask(ctx, "console", func(ctx context.Context) { d.workers(ctx, js, s.Streams) })
	d.passwords(ctx)
	d.access(ctx) // the last one: its refusals are no answer to another check
	return s.Streams
}

// inspect checks that the streams can be read, and the clock of their server.
func (d *doctor) inspect(ctx context.Context, js jetstream.JetStream) *topology.Inspection {
	before := d.Now()
	s, err := topology.Inspect(ctx, js)
	took := d.Now().Sub(before)
	switch {
	case errors.Is(err, topology.ErrNoStreams):
		d.problem("streams", "", "%v", err)
		return nil
	case err != nil:
		d.problem("streams", "is JetStream enabled there?", "%v", err)
		return nil
	}
	d.clock(s.Time.Sub(before.Add(took/2)), took)
	return s
}

func (d *doctor) streams(s *topology.Inspection) {
	for _, m := range s.Mismatches {
		d.problem("streams", "correct it with the nats tool, see docs/operations.md", "%s: %s is %s, not %s", m.Stream, m.Field, setting(m.Have), setting(m.Want))
	}
	if len(s.Mismatches) == 0 {
		d.ok("streams", "%d partitions, kept for %s", s.Partitions.Count(), units.Span(s.MaxAge))
		d.figures(Figures{AgeSeconds: int64(s.MaxAge.Seconds())})
	}
	if s.NoAudit {
		d.problem("audit", "restart a worker: it creates the stream, or its log has the reason (retrying, step record); "+
			"make room by a lower --max-bytes or a higher max_file_store",
			"%s is missing: policies, tokens and reads of content by operators are refused", topology.AuditStream)
		d.Findings[len(d.Findings)-1].Code = events.CodeStorageLimit
	}
	for _, x := range []struct {
		name string
		topology.StreamState
	}{{topology.LogStream, s.Log}, {topology.OutcomesStream, s.Outcomes}} {
		most := uint64(max(x.MaxBytes, 0))
		if most > 0 && disk.Scarce(most-min(x.Bytes, most), most) {
			d.problem("streams", "raise its size or shorten its age", "%s has too little room: it holds %s of %s", x.name, units.Bytes(x.Bytes), units.Bytes(most))
			d.figures(Figures{Bytes: x.Bytes, SizeBytes: most})
		}
	}
}

// nearlyFull is the share of OUTCOMES, in percent, above which the largest tenants matter.
const nearlyFull = 80

// tenants names those that hold most of OUTCOMES, when it is nearly full.
func (d *doctor) tenants(ctx context.Context, js jetstream.JetStream, s topology.StreamState) {
	if s.MaxBytes <= 0 || s.Bytes < uint64(s.MaxBytes)/100*nearlyFull {
		return
	}
	held, err := stream.CompactedBytes(ctx, js, s.Last)
	if err != nil {
		d.problem("tenants", "", "%v", err)
		return
	}
	names := slices.SortedFunc(maps.Keys(held), func(a, b string) int {
		return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(a, b))
	})
	var most []string
	for _, name := range names[:min(len(names), 3)] {
		most = append(most, fmt.Sprintf("%s %s", name, units.Bytes(held[name])))
	}
	d.note("tenants", "see outcomes of a tenant in docs/operations.md; messages_omitted in the worker's log names who has reached a bound",
		"%s is more than %d %% full; most of its compactions are of %s", topology.OutcomesStream, nearlyFull, cmp.Or(strings.Join(most, ", "), "no tenant"))
}

// budgets names the tenants that have spent their money of the month, as the workers have added it up.
func (d *doctor) budgets(ctx context.Context) {
	var out events.TenantsResponse
	in := events.TenantsRequest{V: events.Version, Ranking: events.Ranking{Sort: events.SortSummaries}, Limit: events.MaxSessions}
	if request.Send(ctx, d.Conn, events.SubjectTenants, in, &out) != nil {
		return // without a worker partitions have no owner
	}
	var spent []string
	for _, t := range out.Tenants {
		if most := t.MonthCents * events.NanoPerCent; most > 0 && t.Month >= most {
			spent = append(spent, t.Tenant)
		}
	}
	if len(spent) > 0 {
		d.note("budgets", "raise limits.month_cents of the tenant, see docs/summaries.md", "no model writes summaries this month for %s: the money is spent", strings.Join(spent, ", "))
	}
}

// setting is one of a stream as people read it: the times are in Go's form.
func setting(text string) string {
	first, rest, _ := strings.Cut(text, " ")
	if age, err := time.ParseDuration(first); err == nil {
		return strings.TrimSpace(units.Span(age) + " " + rest)
	}
	return text
}

func (d *doctor) durability(s *topology.Inspection) {
	if least := min(s.Replicas[0], s.Replicas[1]); least >= 3 {
		d.ok("durability", "%d copies: an acknowledged turn survives the loss of %d of their servers", least, (least-1)/2)
	} else {
		d.note("durability", "use three servers and replicas 3 to survive the loss of one",
			"one copy: an acknowledged turn survives a crash of the process, not the loss of the disk")
	}
	if s.Replicas[0] != s.Replicas[1] {
		d.problem("durability", "give both the same with the nats tool", "%s has %d copies, %s has %d", topology.LogStream, s.Replicas[0], topology.OutcomesStream, s.Replicas[1])
	}
	for _, b := range s.Behind {
		d.problem("durability", "bring that server back", "%s", b)
	}
	d.note("durability", "--durability power on an embedded server, sync_interval: always on another",
		"whether a turn survives a power loss too is a setting of the server that no client can see")
}

func (d *doctor) clock(skew, took time.Duration) {
	if skew.Abs() > maxSkew+took/2 {
		d.problem("clock", "set both by NTP: lag and idle sessions depend on the clock", "the server's clock is %s from the one here", units.Span(skew.Round(time.Millisecond)))
		return
	}
	d.ok("clock", "the server's clock is %s from the one here", units.Span(skew.Round(time.Millisecond)))
}

func (d *doctor) markers(ctx context.Context, js jetstream.JetStream, s *topology.Streams) {
	bad, last := 0, s.Log.Last
	for id := range s.Partitions.Count() {
		m, err := commit.LastMarker(ctx, d.Conn, id)
		if err == nil && m.Cursor > last { // the log may have grown since it was read
			var log topology.StreamState
			log, err = topology.State(ctx, js, topology.LogStream)
			last = max(last, log.Last)
		}
		switch {
		case err != nil:
			d.problem("markers", "", "%v", err)
		case m.Seq > 0 && m.LogCreated != s.Log.Created.UnixNano():
			d.problem("markers", "restore the server's store as a whole; to purge OUTCOMES loses what was compacted", "partition %d: its outcomes belong to another log", id)
		case m.Cursor > last:
			d.problem("markers", "a worker goes on from the log's end when it starts", "partition %d: log truncated: last sequence %d, outcomes committed up to %d", id, last, m.Cursor)
		default:
			continue
		}
		bad++
	}
	if bad == 0 {
		d.ok("markers", "%d partitions fit the log", s.Partitions.Count())
	}
}

// rejections reports the events that were rejected lately. Their sessions are in the log of
// the workers.
func (d *doctor) rejections(ctx context.Context, js jetstream.JetStream) {
	before, err := stream.LastUntil(ctx, js, topology.OutcomesStream, d.Now().Add(-lately))
	codes, n, newest := map[events.Code]int{}, 0, uint64(0)
	if err == nil {
		all := "out.*." + string(events.KindRejected) + ".*.*"
		err = stream.ReadStream(ctx, js, topology.OutcomesStream, all, before+1, 0, func(m jetstream.Msg, _ uint64) error {
			var r events.Rejected
			if err := codec.Unmarshal(m.Data(), &r); err != nil {
				return nil //nolint:nilerr // none of a worker
			}
			codes[r.Code]++
			n, newest = n+1, max(newest, r.Seq)
			return nil
		})
	}
	switch {
	case err != nil:
		d.problem("rejections", "", "%v", err)
	case n == 0:
		d.ok("rejections", "none within %s", units.Span(lately))
	default:
		var list []string
		for _, c := range slices.Sorted(maps.Keys(codes)) {
			list = append(list, fmt.Sprintf("%s %d", c, codes[c]))
		}
		d.note("rejections", "`event rejected` in the log of the workers names the sessions; docs/format/wire.md explains the codes",
			"%d within %s, the last of the event at sequence %d: %s", n, units.Span(lately), newest, strings.Join(list, ", "))
	}
}

// snapshots checks what a worker without ledger files would go on from.
func (d *doctor) snapshots(ctx context.Context, js jetstream.JetStream, s *topology.Streams) {
	store, found, bytes, oldest := snapshot.New(js), 0, uint64(0), d.Now()
	for id := range s.Partitions.Count() {
		newest, err := store.Newest(ctx, id)
		switch {
		case errors.Is(err, snapshot.ErrNone):
		case errors.Is(err, jetstream.ErrStreamNotFound):
			d.note("snapshots", "the next start of a worker makes it", "there is no object store %s", topology.SnapshotsBucket)
			return
		case err != nil:
			d.problem("snapshots", "nothing to do: the next one replaces it", "%v", err)
		case newest.Marker.LogCreated != s.Log.Created.UnixNano():
			d.problem("snapshots", "nothing to do: the next one replaces it", "that of partition %d belongs to another log", id)
		case d.late(ctx, js, s, id, newest):
			return
		default:
			found, bytes = found+1, bytes+newest.Bytes
			if newest.Time.Before(oldest) {
				oldest = newest.Time
			}
		}
	}
	if found < s.Partitions.Count() {
		d.note("snapshots", "workers take them every --snapshot-every; until then a new one reads the log from its beginning",
			"%d of %d partitions have one", found, s.Partitions.Count())
		return
	}
	age := max(0, d.Now().Sub(oldest)).Truncate(time.Second)
	d.ok("snapshots", "of %d partitions, %s, the oldest of %s ago", found, units.Bytes(bytes), units.Span(age))
	d.figures(Figures{Bytes: bytes, AgeSeconds: int64(age.Seconds())})
}

// style makes problems stand out.
func style(level string) term.Style {
	return map[Level]term.Style{LevelOK: term.Good, LevelNote: term.Notice, LevelProblem: term.Bad}[Level(level)]
}

// Write prints the findings as a table, with the hints below each.
func (d *Diagnosis) Write(w io.Writer) error {
	t := term.NewTable(w, term.Column{Style: style}, term.Column{}, term.Column{Wrap: true, Min: 20})
	for _, f := range d.Findings {
		t.Row(f.Level, f.Check, f.Message)
		if f.Hint != "" && f.Level != LevelOK {
			t.Row("", "", "-> "+f.Hint)
		}
	}
	return t.Flush()
}
