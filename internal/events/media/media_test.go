package media_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/media"
)

func encoded(b []byte) codec.Raw { return codec.Quote(base64.StdEncoding.EncodeToString(b)) }

func picture(t testing.TB, kind string, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})
	var err error
	switch kind {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	default:
		err = gif.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pdf is a document with so many pages, its tree of pages behind so much padding.
func pdf(pages, padding int) []byte {
	return fmt.Appendf(nil, "%%PDF-1.7\n1 0 obj\n<</Type/Catalog/Pages 2 0 R/Outlines 9 0 R>>\nendobj\n9 0 obj\n<</Type/Outlines/First 8 0 R/Count 9999>>\nendobj\n"+
		"5 0 obj\n<</Length %d>>\nstream\n%s\nendstream\nendobj\n"+
		"3 0 obj\n<</Type/Pages/Parent 2 0 R/Kids[4 0 R]/Count 1>>\nendobj\n"+
		"2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count %d>>\nendobj\ntrailer<</Root 1 0 R>>\n%%%%EOF", padding, strings.Repeat("x", padding), pages)
}

// Media have the size that their headers state, also where most of them is missing.
func TestShape(t *testing.T) {
	full := media.Shape{Width: 1920, Height: 1080}
	exif := picture(t, "jpeg", 1920, 1080)
	segment := append([]byte{0xff, 0xe1, 0xff, 0xff}, make([]byte, 0xffff-2)...)
	exif = append(append([]byte{0xff, 0xd8}, bytes.Repeat(segment, 3)...), exif[2:]...)
	webp := func(kind string, rest ...byte) []byte {
		return append(append([]byte("RIFF\x00\x00\x00\x00WEBP"), kind+"\x00\x00\x00\x00"...), append(rest, make([]byte, 16)...)...)
	}
	prefix := encoded(picture(t, "png", 1920, 1080))
	for name, c := range map[string]struct {
		raw  codec.Raw
		want media.Shape
	}{
		"png":            {encoded(picture(t, "png", 1920, 1080)), full},
		"jpeg":           {encoded(picture(t, "jpeg", 1920, 1080)), full},
		"jpeg with exif": {encoded(exif), full},
		"gif":            {encoded(picture(t, "gif", 1920, 1080)), full},
		"webp, lossy":    {encoded(webp("VP8 ", 0, 0, 0, 0x9d, 1, 0x2a, 0x80, 7, 0x38, 4)), full},
		"webp, lossless": {encoded(webp("VP8L", 0x2f, 0x7f, 0xc7, 0x0d, 1)), full},
		"webp, extended": {encoded(webp("VP8X", 0, 0, 0, 0, 0x7f, 7, 0, 0x37, 4, 0)), full},
		"data URL":       {codec.Quote("data:image/png;base64," + base64.StdEncoding.EncodeToString(picture(t, "png", 1920, 1080))), full},
		"a prefix":       {append(prefix[:len(prefix)/2:len(prefix)/2], '"'), full},
		"escaped":        {codec.Raw(strings.ReplaceAll(string(encoded(picture(t, "jpeg", 1920, 1080))), "/", `\/`)), full},
		"pdf":            {encoded(pdf(100, 10)), media.Shape{Pages: 100}},
		"large pdf":      {encoded(pdf(100, 1<<20)), media.Shape{Pages: 100}},
		"opaque pdf":     {encoded(append([]byte("%PDF-1.7\n"), make([]byte, 99_000)...)), media.Shape{Pages: 5}},
		"linearized":     {encoded([]byte("%PDF-1.7\n1 0 obj\n<</Linearized 1/L 9/H [1 2]/O 3/E 4/N 37/T 5>>\nendobj\n")), media.Shape{Pages: 37}},
		"url":            {codec.Quote("https://example.com/a.png"), media.Shape{}},
		"words":          {codec.Quote("what a picture that is, is it not, and more"), media.Shape{}},
		"no size":        {encoded([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x00\x00\x00\x00\x00")), media.Shape{}},
		"nothing":        {codec.Raw(`""`), media.Shape{}},
		"object":         {codec.Raw(`{}`), media.Shape{}},
	} {
		if got := media.Of(c.raw); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Of several media the pages are added up, and the sides are the mean.
func TestShapes(t *testing.T) {
	a, b, pages := media.Shape{Width: 100, Height: 400}, media.Shape{Width: 300, Height: 200}, media.Shape{Pages: 7}
	for _, c := range []struct {
		n                int
		was, more, total media.Shape
	}{
		{0, media.Shape{}, a, a},
		{1, a, b, media.Shape{Width: 200, Height: 300}},
		{3, a, a, a},
		{1, a, pages, media.Shape{Width: 100, Height: 400, Pages: 7}},
		{1, pages, pages, media.Shape{Pages: 14}},
		{1, media.Shape{}, media.Shape{}, media.Shape{}},
		{1, pages, media.Shape{}, media.Shape{Width: 1024, Height: 1024, Pages: 7}},
		{1, media.Shape{Pages: 65535}, pages, media.Shape{Pages: 65535}},
	} {
		if got := c.was.Add(c.n, c.more); got != c.total {
			t.Errorf("%v × %d and %v: %v, want %v", c.was, c.n, c.more, got, c.total)
		}
	}
}

// An image of low detail is within a square; its proportions stay.
func TestLow(t *testing.T) {
	for was, want := range map[media.Shape]media.Shape{
		{Width: 1920, Height: 1080}: {Width: 512, Height: 288},
		{Width: 1, Height: 60_000}:  {Width: 1, Height: 512},
		{Width: 512, Height: 300}:   {Width: 512, Height: 300},
		{}:                          {Width: 512, Height: 512},
		{Pages: 3}:                  {Pages: 3},
	} {
		if got := was.Low(); got != want {
			t.Errorf("%v: %v, want %v", was, got, want)
		}
	}
}

// The cost is that of the header, however large the image is.
func TestShapeReadsHeaders(t *testing.T) {
	raw := encoded(append(picture(t, "png", 64, 64), make([]byte, 4<<20)...))
	whole, header := testing.AllocsPerRun(10, func() { media.Of(raw) }), testing.AllocsPerRun(10, func() { media.Of(encoded(picture(t, "png", 64, 64))) })
	if whole > 4 || header < whole {
		t.Errorf("%v allocations for an image of 4 MiB, %v for one of few bytes", whole, header)
	}
}

// Whatever the bytes are, reading them ends.
func FuzzShape(f *testing.F) {
	for _, kind := range []string{"png", "jpeg", "gif"} {
		f.Add(picture(f, kind, 3, 5))
	}
	f.Add(pdf(3, 10))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s := media.Of(encoded(b)); s.Width > 0 != (s.Height > 0) || s.Width > 0 && s.Pages > 0 {
			t.Errorf("%v of %q", s, b)
		}
	})
}
