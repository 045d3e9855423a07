package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/term"
)

type attachCmd struct {
	callFlags
	Focus  string        `placeholder:"TEXT" help:"Content that summaries of files must preserve."`
	Policy string        `placeholder:"JSON" help:"Fields of the policy for this call."`
	Wait   time.Duration `default:"20s" placeholder:"TIME" help:"How long to wait for models that summarize files, up to 1m (${default}); 0 does not wait."`
	Text   bool          `help:"Print the texts to send, one after the other, instead of a table."`
	Files  []string      `arg:"" placeholder:"FILE" help:"Files to attach."`
}

// Run prints what to send of each file. That the call does not fit is a failure.
func (c *attachCmd) Run(ctx context.Context, f *flags, nc *nats.Conn) error {
	a := f.address(c.Session)
	ms := min(max(c.Wait, 0), events.MaxSummaryWait).Milliseconds()
	in := events.AttachRequest{About: a.About(), Focus: c.Focus, SummaryMS: &ms, NextCall: c.next()}
	if c.Policy != "" {
		in.Policy = codec.Raw(c.Policy)
	}
	if err := c.attach(&in, int(min(nc.MaxPayload(), events.MaxCheckBytes))); err != nil {
		return err
	}
	out, err := request.Attach(ctx, nc, in)
	if errors.Is(err, nats.ErrMaxPayload) {
		err = events.NewInvalid(events.CodeTooLarge, "attachments", "are more than the server takes")
	}
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return writeAttached(w, a, out) }
	if c.Text {
		write = func(w io.Writer) error { return writeTexts(w, out) }
	}
	return cmp.Or(f.show(out, write), mustFit(out.Fits))
}

// attachMargin is the size of a request beside the texts of files.
const attachMargin = 64 << 10

// attach reads the files into a request of at most limit bytes: of files that are too
// much together the beginnings.
func (c *attachCmd) attach(in *events.AttachRequest, limit int) error {
	for most := max(limit-attachMargin, 0); ; most /= 2 {
		in.Attachments = in.Attachments[:0]
		for _, name := range c.Files {
			file, err := readAttachment(name, most/len(c.Files))
			if err != nil {
				return err
			}
			in.Attachments = append(in.Attachments, file)
		}
		data, err := codec.Marshal(in)
		if err != nil {
			return events.NewInvalid(events.CodeBadPolicy, "policy", "is not one JSON object")
		}
		if len(data) <= limit || most == 0 {
			_, err := events.Decode[events.AttachRequest](data)
			return err
		}
	}
}

// readAttachment reads the first most bytes of a file; what is not UTF-8 has no text.
func readAttachment(path string, most int) (out events.AttachedFile, err error) {
	f, err := os.Open(path)
	if err != nil {
		return out, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return out, err
	}
	if !info.Mode().IsRegular() {
		return out, events.NewInvalid(events.CodeBadType, path, "is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)))
	if err != nil {
		return out, fmt.Errorf("read %s: %w", path, err)
	}
	out = events.AttachedFile{Name: filepath.Base(path), Type: types[strings.ToLower(filepath.Ext(path))], Bytes: max(info.Size(), int64(len(data)))}
	if text, ok := textOf(data, int64(len(data)) < out.Bytes); ok {
		out.Text = &text
	} else if out.Type == "" {
		out.Type = "unknown"
	}
	return out, nil
}

// textOf returns data as a text, and whether it is one. If the data was cut, the text does not have the
// incomplete rune at its end.
func textOf(data []byte, cut bool) (string, bool) {
	for n := 0; cut && n < utf8.UTFMax && len(data) > 0 && !utf8.Valid(data); n++ {
		data = data[:len(data)-1]
	}
	s := string(data)
	return s, utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

// types of files by their extension; any other is text, if it is UTF-8.
var types = map[string]string{
	".pdf": "pdf", ".docx": "docx", ".xlsx": "xlsx", ".pptx": "pptx", ".svg": "svg",
	".png": "image", ".jpg": "image", ".jpeg": "image", ".gif": "image", ".webp": "image",
	".mp3": "audio", ".wav": "audio", ".ogg": "audio", ".mp4": "video", ".webm": "video", ".mov": "video",
	".zip": "archive", ".tar": "archive", ".gz": "archive", ".tgz": "archive", ".7z": "archive",
}

func writeAttached(w io.Writer, a events.Address, r *events.AttachResponse) error {
	t := term.NewTable(w, term.Column{Name: "FILE", Min: 20}, term.Column{Name: "ACTION"}, term.Column{Name: "TOKENS", Right: true},
		term.Column{Name: "WHOLE", Right: true}, term.Column{Name: "MODEL", Drop: 1})
	for _, f := range r.Attachments {
		t.Row(f.Name, f.Action, f.Tokens, f.WholeTokens, f.Model)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return term.Pairs(w,
		"session", showKnown(a, r.Known),
		"fits", r.Fits,
		"level", r.Level,
		"for files", fmt.Sprintf("%d tokens", r.FileBudget),
		"estimated input", fmt.Sprintf("%d tokens", r.Budget.EstimatedInput),
		"available input", fmt.Sprintf("%d tokens", r.Budget.AvailableInput))
}

// writeTexts prints what to send.
func writeTexts(w io.Writer, r *events.AttachResponse) error {
	for _, f := range r.Attachments {
		if f.Text == "" || f.Action == events.FileLeftOut {
			continue
		}
		if _, err := fmt.Fprintln(w, strings.TrimSuffix(f.Text, "\n")); err != nil {
			return err
		}
	}
	return nil
}
