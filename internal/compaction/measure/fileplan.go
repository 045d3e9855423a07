package measure

import (
	"fmt"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Attachment is a file that waits to enter a history.
type Attachment struct {
	File
	// Text is the text of the file, or its beginning if it has fewer than Bytes bytes; nil if only type and
	// size are known.
	Text *string
}

// complete reports whether the whole text is there.
func (a *Attachment) complete() bool { return a.Text != nil && int64(len(*a.Text)) >= a.Bytes }

// FilePlan decides which parts of several files enter a history (B15). It is made in three steps:
// [PlanFiles], a call of Summarized for each file with a Target, and Fit.
type FilePlan struct {
	Files  []PlannedFile
	Budget Tokens // for all files together

	meter  Meter
	rate   Rate
	limits FileLimits
	texts  []Attachment
}

// PlannedFile is the plan for one file.
type PlannedFile struct {
	Action events.FileAction
	Text   string // of the file, or in place of it; "" for a whole file without text
	Tokens Tokens // of the part that enters
	Whole  Tokens // of the whole file
	// Target is the largest cost of a summary of the file; 0 for a file that is not summarized.
	Target Tokens
}

// PlanFiles plans for files that are attached to a call, given its prompt without them,
// the available input and the trigger. A file above the preview size is cut to its
// beginning. If all are too much, or would reach the trigger, those whose whole text is
// there are summarized, the largest first, if the limits have any summarized.
func PlanFiles(by Meter, r Rate, l FileLimits, files []Attachment, p Prompt, available, trigger Tokens) *FilePlan {
	plan := &FilePlan{
		Files: make([]PlannedFile, len(files)), Budget: l.Share.Share(max(available-p.Total(), 0)),
		meter: by, rate: r, limits: l, texts: files,
	}
	var total Tokens
	for i := range files {
		plan.read(i)
		total += plan.Files[i].Tokens
	}
	if l.Summarize && l.MaxSummary > 0 && (total > plan.Budget || p.Total()+total >= trigger) {
		plan.target(min(plan.Budget, l.Available(p, available)))
	}
	return plan
}

// count estimates a text as a part of a message.
func (p *FilePlan) count(text string) Tokens { return p.rate.Sized(p.meter.Text(text)) }

// read selects the part of a file that is sent, by the size of the file alone.
func (p *FilePlan) read(i int) {
	a, f := &p.texts[i], &p.Files[i]
	f.Action = events.FileWhole
	if a.Text == nil {
		f.Whole = FileTokens(a.Kind, a.Bytes)
		f.Tokens = f.Whole
		return
	}
	f.Text = *a.Text
	f.Whole = p.count(f.Text)
	switch {
	case a.Bytes > p.limits.PreviewBytes:
		f.Action = events.FilePreview
		f.Text, _ = CutUnits(f.Text, p.limits.PreviewUnits)
		f.Text += noticeOf(events.FilePreview, a)
	case !a.complete():
		f.Action = events.FileCut
		f.Text += noticeOf(events.FileCut, a)
	}
	if !a.complete() {
		f.Whole = max(f.Whole, FileTokens(a.Kind, a.Bytes))
	}
	f.Tokens = p.count(f.Text)
}

// target selects files to summarize until all fit into room.
func (p *FilePlan) target(room Tokens) {
	var index []int
	var sizes []Tokens
	for i := range p.Files {
		if f := &p.Files[i]; f.Action == events.FileWhole && f.Text != "" {
			index, sizes = append(index, i), append(sizes, f.Tokens)
		} else {
			room -= f.Tokens
		}
	}
	for _, s := range p.limits.Summaries(sizes, max(room, 0)) {
		p.Files[index[s.File]].Target = s.Target
	}
}

// Units is the largest size of a file's summary, in UTF-16 units.
func (p *FilePlan) Units(i int) int64 {
	return max(p.rate.Prose(p.Files[i].Target)-int64(codec.Units(noticeOf(events.FileSummarized, &p.texts[i]))), 0)
}

// Summarized replaces a file by its summary; an empty one leaves the file to be cut.
func (p *FilePlan) Summarized(i int, summary string) {
	f := &p.Files[i]
	if summary == "" {
		return
	}
	notice := noticeOf(events.FileSummarized, &p.texts[i])
	text := p.meter.CutTo(p.rate, summary, f.Target-p.count(notice)-1) + notice
	if cost := p.count(text); cost < f.Tokens {
		f.Action, f.Text, f.Tokens = events.FileSummarized, text, cost
	}
}

// Fit makes the files cost at most the budget. Of the files with only type and size as many enter as fit into
// their part of it, the smallest first; the texts of the others are cut in proportion.
func (p *FilePlan) Fit() {
	var sized []int
	var texts, without Tokens
	for i := range p.Files {
		f := &p.Files[i]
		if p.texts[i].Text == nil {
			sized, without = append(sized, i), without+f.Tokens
			continue
		}
		p.cutAlone(i)
		texts += f.Tokens
	}
	if texts+without <= p.Budget {
		return
	}
	left := p.Budget - p.leaveOut(sized, p.Budget*without/(texts+without))
	if texts <= left {
		return
	}
	for i := range p.Files {
		if p.texts[i].Text != nil {
			p.cut(i, left*p.Files[i].Tokens/texts)
		}
	}
}

// cutAlone cuts a file that is larger than the whole budget, so that it does not displace all others.
func (p *FilePlan) cutAlone(i int) {
	if f := &p.Files[i]; f.Action == events.FileWhole {
		if read := p.limits.Read(p.texts[i].Bytes, p.Budget); read.Cut && f.Tokens > p.Budget {
			p.cut(i, p.Budget)
		}
	}
}

// leaveOut leaves out the largest of the files without texts until the others cost at most part tokens, and
// returns that cost.
func (p *FilePlan) leaveOut(sized []int, part Tokens) (cost Tokens) {
	files := make([]File, len(sized))
	for k, i := range sized {
		files[k] = p.texts[i].File
	}
	bySize, fits := choose(files, part)
	for k, at := range bySize {
		if i := sized[at]; fits[k] {
			cost += p.Files[i].Tokens
		} else {
			p.omit(i)
		}
	}
	return cost
}

// cut cuts the text of a file to budget tokens, its notice included. A file with less than a few words left
// is left out.
func (p *FilePlan) cut(i int, budget Tokens) {
	f, a := &p.Files[i], &p.texts[i]
	if f.Tokens <= budget {
		return
	}
	action := events.FileCut
	if f.Action != events.FileWhole {
		action = f.Action
	}
	notice := noticeOf(action, a)
	text := f.Text[:len(f.Text)-len(noticeIn(f.Action, a))]
	left := budget - p.count(notice) - 1 // the two counted together may cost one more
	if left < fewWords {
		p.omit(i)
		return
	}
	f.Action, f.Text = action, p.meter.CutTo(p.rate, text, left)+notice
	f.Tokens = p.count(f.Text)
}

func (p *FilePlan) omit(i int) {
	f := &p.Files[i]
	f.Action, f.Text, f.Tokens = events.FileLeftOut, p.texts[i].Notice(), 0
}

// noticeIn is the notice that ends the text of a file.
func noticeIn(action events.FileAction, a *Attachment) string {
	if action == events.FileWhole {
		return ""
	}
	return noticeOf(action, a)
}

// noticeOf states which part of the file a text is.
func noticeOf(action events.FileAction, a *Attachment) string {
	switch action {
	case events.FileSummarized:
		return fmt.Sprintf("\n[Summary of %q, a file of %d bytes]", a.Name, a.Bytes)
	case events.FilePreview:
		return fmt.Sprintf("\n[Preview of %q, a file of %d bytes]", a.Name, a.Bytes)
	default:
		return fmt.Sprintf("\n[Beginning of %q, a file of %d bytes]", a.Name, a.Bytes)
	}
}
