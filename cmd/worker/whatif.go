package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/term"
	"compactd/internal/ops/transcript"
	"compactd/internal/ops/units"
	"compactd/internal/ops/whatif"
	"compactd/internal/policyfile"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/redecide"
	"compactd/internal/worker/service"
)

// errInvalid is a defect.
var errInvalid = errors.New("some histories are not valid for their provider, which is a defect; please report it with the session")

// playFiles compares policies on transcripts. Unreadable lines are reported.
func (c *replayCmd) playFiles(ctx context.Context, f *flags, log zerolog.Logger) error {
	r, err := c.report(f, topology.DefaultMaxAge, nil)
	if err != nil {
		return err
	}
	screen := term.Open(os.Stdout, f.Color)
	if c.note != "" && !c.JSON {
		if err := term.Wrapped(screen, c.note); err != nil {
			return err
		}
		fmt.Fprintln(screen)
	}
	source, err := c.open()
	if err != nil {
		return err
	}
	bar := term.NewBar(os.Stderr, "reading", source.Bytes(), false)
	defer bar.Done()
	read := 0
	source.Read = func(bytes int64) {
		read++
		bar.Describe(fmt.Sprintf("%d of %s", read, units.Count(source.Len(), "file")))
		bar.Add(bytes)
	}
	report := func(err error) {
		bar.Clear()
		log.Warn().Err(err).Msg("left out")
	}
	for s := range source.Sessions(report) {
		if err := r.Add(ctx, whatif.FromTranscript(s)); err != nil {
			return err
		}
	}
	bar.Done()
	if source.Unknown > 0 {
		log.Warn().Int("files", source.Unknown).Msg("left out: files that are no transcripts")
	}
	if r.Sessions == 0 {
		return errors.New("there is no session in these files; docs/cli.md has the formats that are read")
	}
	if c.compare || c.JSON {
		return c.print(f, r)
	}
	return c.printSessions(screen, r)
}

// open finds the transcripts.
func (c *replayCmd) open() (*transcript.Source, error) {
	if c.source != nil {
		return c.source, nil
	}
	source, err := transcript.Open(transcript.Auto, c.Files...)
	if errors.Is(err, transcript.ErrUnknown) {
		return nil, fmt.Errorf("%w; docs/cli.md has those that are read", err)
	}
	return source, err
}

// printSessions shows how each session would have been compacted, and one compaction.
func (c *replayCmd) printSessions(screen *term.Screen, r *whatif.Report) error {
	if err := r.WriteSessions(screen); err != nil {
		return err
	}
	if largest := r.Largest(); largest != nil {
		fmt.Fprintln(screen)
		if err := largest.Write(screen); err != nil {
			return err
		}
	}
	return cmp.Or(c.writeNext(screen), unless(r.Invalid() == 0, errInvalid))
}

// writeNext prints commands to try next.
func (c *replayCmd) writeNext(screen *term.Screen) error {
	compare := strings.TrimSpace(cli.Program("worker") + " replay --policy default --policy claude " + strings.Join(c.named, " "))
	fmt.Fprintln(screen, "\nNext:")
	t := term.NewTable(screen, term.Column{}, term.Column{Drop: 1})
	t.Row("  "+compare, "# compare policies")
	t.Row("  "+cli.Program("worker"), "# serve your agents")
	t.Row("  "+cli.Program("worker")+" replay --help", "# logs, other policies, JSON")
	return t.Flush()
}

// playLog compares policies with each other, and with the published outcomes.
func (c *replayCmd) playLog(ctx context.Context, f *flags, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	streams, err := topology.Describe(ctx, js)
	if err != nil {
		return err
	}
	r, err := c.report(f, streams.MaxAge, f.writer, whatif.Policy{Name: whatif.Recorded})
	if err != nil {
		return err
	}
	known, err := counters()
	if err != nil {
		return err
	}
	err = redecide.Recordings(ctx, nc, c.span, known, func(rec redecide.Recording, why error) error {
		if why != nil {
			r.LeaveOut(why.Error())
			return nil
		}
		return r.Add(ctx, recorded(rec.Address, rec.Events))
	})
	if err != nil {
		return err
	}
	return c.print(f, r)
}

// recorded is a session of a log.
func recorded(a events.Address, all []redecide.RecordedEvent) *whatif.Session {
	s := &whatif.Session{Address: a, Decided: true}
	for _, e := range all {
		s.Events = append(s.Events, whatif.Event(e))
	}
	return s
}

// report has a column for each policy that is named, behind some others, for a log
// that keeps its events so long.
func (c *replayCmd) report(f *flags, age time.Duration, writer func(*events.Job) string, columns ...whatif.Policy) (*whatif.Report, error) {
	var last *compaction.Config // that a baseline is of
	for _, name := range f.Policy {
		p, err := c.column(f, age, name, last)
		if err != nil {
			return nil, fmt.Errorf("--policy %s: %w", name, err)
		}
		if _, ok := whatif.Baselines[name]; !ok {
			last = p.Config
		}
		columns = append(columns, p)
	}
	return whatif.NewReport(columns, whatif.Options{Delay: c.SummaryDelay, Largest: !c.compare, Writer: writer}), nil
}

// column is that of a policy, or of a baseline for the policy before it.
func (c *replayCmd) column(f *flags, age time.Duration, name string, of *compaction.Config) (whatif.Policy, error) {
	_, baseline := whatif.Baselines[name]
	if baseline && of != nil {
		return whatif.Baseline(name, of)
	}
	named := name
	if baseline {
		named = "default"
	}
	s, err := f.load(named)
	if err != nil {
		return whatif.Policy{}, err
	}
	if of, err = s.Config.WithRetention(int64(age / time.Second)); err == nil && baseline {
		return whatif.Baseline(name, of)
	}
	return whatif.Policy{Name: name, Config: of}, err
}

func (c *replayCmd) print(f *flags, r *whatif.Report) error {
	return cmp.Or(f.show(c.JSON, r), unless(r.Invalid() == 0, errInvalid))
}

const (
	// whatIfTime bounds an answer about other policies, and whatIfBytes the events that it reads.
	whatIfTime  = 20 * time.Second
	whatIfBytes = 32 << 20
)

// whatIf decides a session again, under the policy in force and under others, as replay does, in the turn of
// other requests.
func (f *flags) whatIf(ctx context.Context, s *service.Service, in *events.WhatIfRequest) (*events.WhatIfResponse, error) {
	sets := slices.Concat([][]string{{}}, in.Set) // the policy in force comes first
	configs, err := whatIfConfigs(s.Compaction(), in.Tenant, sets)
	if err != nil {
		return nil, events.NewInvalid(events.CodeBadPolicy, "set", err.Error())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, whatIfTime, service.ErrBusy)
	defer cancel()
	session, err := lifeOf(ctx, s, in.Address())
	if err != nil {
		return nil, err
	}
	paced, end := s.Limiter().Paced(ctx, limit.Of(ctx).Account())
	choices, err := whatif.Compare(paced, session, sets, configs, whatif.Options{Delay: whatif.Delay, Writer: f.writer})
	end()
	switch {
	case ctx.Err() != nil:
		return nil, service.ErrBusy
	case err != nil:
		return nil, err
	}
	out := &events.WhatIfResponse{V: events.Version}
	for _, c := range choices {
		data, err := codec.Marshal(c)
		if err != nil {
			return nil, err
		}
		out.Policies = append(out.Policies, data)
	}
	return out, nil
}

// lifeOf reads the decisions about a session since its name was last used for another one.
func lifeOf(ctx context.Context, s *service.Service, a events.Address) (*whatif.Session, error) {
	known, err := counters()
	if err != nil {
		return nil, err
	}
	if err := s.AwaitMarker(ctx, a); err != nil {
		return nil, err
	}
	if err := limit.Of(ctx).Remember(ctx, whatIfBytes); err != nil {
		return nil, service.ErrBusy
	}
	all, err := service.Reading(ctx, func() (all []redecide.RecordedEvent, err error) {
		span := redecide.Span{Tenant: a.Tenant, Session: a.Session, Most: whatIfBytes}
		err = redecide.Recordings(ctx, s.Answers(), span, known, func(rec redecide.Recording, why error) error {
			all = rec.Events
			return why
		})
		return all, err
	})
	switch {
	case ctx.Err() != nil:
		return nil, service.ErrBusy
	case errors.Is(err, redecide.ErrTooLarge):
		return nil, events.NewInvalid(events.CodeTooLarge, "", "the events of the session have more than 32 MiB")
	case errors.Is(err, redecide.ErrOlder):
		return nil, events.Refuse(events.CodeGone, "the session began before the log does", "Compare policies on a session whose first turn the log has.")
	case err != nil:
		return nil, err
	}
	for i, e := range slices.Backward(all) {
		if e.Kind == events.KindEnd || e.Kind == events.KindForget {
			all = all[i+1:]
			break
		}
	}
	if len(all) == 0 {
		return nil, events.NewInvalid(events.CodeUnknownSession, "", "the log has no turn of the session")
	}
	return recorded(a, all), nil
}

// whatIfConfigs are the config in force with more fields set in the policy of a tenant.
func whatIfConfigs(now *compaction.Config, tenant string, sets [][]string) (out []*compaction.Config, err error) {
	for _, set := range sets {
		c := now
		if len(set) > 0 {
			p, err := policyfile.Set(*now.For(tenant), set)
			if err != nil {
				return nil, err
			}
			if c, err = now.WithPolicy(p); err != nil {
				return nil, err
			}
		}
		out = append(out, c)
	}
	return out, nil
}
