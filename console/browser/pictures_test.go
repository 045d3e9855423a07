package browser

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

var pictures = flag.Bool("pictures", false, "write the pictures of docs/console")

// most is the size of a picture in bytes.
const most = 150 << 10

// The views look as in the docs; with -pictures they are written there.
func TestPictures(t *testing.T) {
	if !*pictures {
		t.Skip("SKIPPED: no check, but what writes docs/console: make test-console ARGS='-run TestPictures -pictures'")
	}
	s := startWorker(t, "")
	s.publish("", "load", "--sessions", "24", "--turns", "30", "--speed", "0", "--tenants", "3", "--tenant", "team", "--name", "agent", "--window", "24000")
	s.examples()
	shots := []struct {
		name, hash string
		size       size
	}{
		{"sessions", "#/sessions", size{1280, 620, false}},
		{"session", "#/s/default/" + example + "?generation=1", size{1280, 1040, false}},
		{"session-dark", "#/s/default/" + example + "?generation=1", size{1280, 1040, true}},
		{"context", "#/s/default/" + example + "/context", size{1280, 760, false}},
		{"what-if", "#/s/default/" + example + "/what-if", size{1280, 780, false}},
		{"tenants", "#/tenants", size{1280, 480, false}},
		{"fleet", "#/fleet", size{1280, 620, false}},
	}
	for _, shot := range shots {
		p := open(t, s.url, shot.hash, shot.size)
		p.shows("Live")
		if shot.name == "what-if" {
			p.wait(`document.querySelector('.verdict')`)
		}
		if shot.name == "fleet" { // a load needs two answers; the machine has no name in a picture
			p.wait(`/\d % of \d/.test(document.querySelector('[aria-label=Workers]').innerText)`)
			eval[bool](p, `(document.querySelectorAll('td.nowrap').forEach(e => {
				const t = e.querySelector('b')?.firstChild ?? e.firstChild
				if (/-\d+-[0-9a-f]{8}$/.test(t?.data)) t.data = 'worker-1-4d1f09a2'
			}), true)`)
		}
		data, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if data, err = fewerColours(data); err != nil {
			t.Fatal(err)
		}
		if len(data) > most {
			t.Errorf("%s has %d bytes, at most %d", shot.name, len(data), most)
		}
		file := filepath.Join(root(t), "docs", "console", shot.name+".png")
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fewerColours writes a picture with the 256 most frequent of its colours, which a page has few of.
func fewerColours(data []byte) ([]byte, error) {
	in, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	b := in.Bounds()
	counts := map[color.NRGBA]int{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			counts[coarse(in.At(x, y))]++
		}
	}
	all := make([]color.NRGBA, 0, len(counts))
	for c := range counts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.NRGBA) int {
		return cmp.Or(counts[b]-counts[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var palette color.Palette
	for _, c := range all[:min(256, len(all))] {
		palette = append(palette, c)
	}
	out, index := image.NewPaletted(b, palette), map[color.NRGBA]uint8{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := coarse(in.At(x, y))
			i, ok := index[c]
			if !ok {
				i = uint8(palette.Index(c)) // of at most 256
				index[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	var w bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&w, out)
	return w.Bytes(), err
}

// coarse leaves out the last two bits, which no eye sees, of all but white.
func coarse(c color.Color) color.NRGBA {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	for _, v := range []*uint8{&n.R, &n.G, &n.B} {
		if *v < 0xfc {
			*v &^= 3
		} else {
			*v = 0xff
		}
	}
	return n
}
