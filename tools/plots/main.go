// Command plots draws what docs/quality.txt reports: needed later over the size of a history,
// the size of a summary over the compactions of a week, and the share of prepared summaries
// over the time that a model takes. It reads the lines that tools/eval prints, so that a page
// and its plots cannot differ.
//
//	go run ./tools/plots docs/quality.txt docs/quality
package main

import (
	"cmp"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: plots <page> <directory>")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

func run(page, dir string) error {
	data, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	lines := read(string(data))
	for _, c := range []chart{
		needed(lines, "needed_later", "Identifiers needed later"),
		needed(lines, "needed_lines", "Lines needed later"),
		week(lines),
		prepared(lines),
	} {
		if err := c.draw(filepath.Join(dir, c.name+".svg")); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// line is a result: its name, its value, and what it is made of.
type line struct {
	name   string
	value  float64
	detail string
}

var result = regexp.MustCompile(`(?m)^eval (\S+) ([\d.]+)(?: [<>]=\S+ \w+)?(?: \((.*)\))?$`)

func read(page string) (out []line) {
	for _, m := range result.FindAllStringSubmatch(page, -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		if err == nil {
			out = append(out, line{m[1], v, m[3]})
		}
	}
	return out
}

// curve is one method.
type curve struct {
	name   string
	points plotter.XYs
}

type chart struct {
	name, title, x, y string
	top               float64 // of y, 0 for what there is
	curves            []curve
}

func (c *chart) add(name string, x, y float64) {
	i := slices.IndexFunc(c.curves, func(k curve) bool { return k.name == name })
	if i < 0 {
		i = len(c.curves)
		c.curves = append(c.curves, curve{name: name})
	}
	c.curves[i].points = append(c.curves[i].points, plotter.XY{X: x, Y: y})
}

var size = regexp.MustCompile(`compactions of (\d+) tokens`)

// needed draws a share over the size of the histories, for each preset and for the newest
// messages of the sizes of the default's.
func needed(lines []line, name, title string) chart {
	c := chart{name: name, title: title, x: "tokens of a history after a compaction, in the mean", y: "share that it still has", top: 1}
	at := map[string]float64{}
	for _, l := range lines {
		rest, ok := strings.CutPrefix(l.name, name+"/")
		target, preset, _ := strings.Cut(rest, "/")
		if _, err := strconv.ParseFloat(target, 64); !ok || err != nil || strings.Contains(rest, "examples") || preset == "model_windows" {
			continue
		}
		if m := size.FindStringSubmatch(l.detail); m != nil {
			x, _ := strconv.ParseFloat(m[1], 64)
			at[rest] = x
			c.add(cmp.Or(preset, "default"), x, l.value)
		}
	}
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l.name, name+"_cut/"); ok && at[rest] > 0 && !strings.Contains(rest, "/") {
			c.add("newest messages, the same size", at[rest], l.value)
		}
	}
	return c
}

var list = regexp.MustCompile(`each fifth compaction \[([\d ]+)\]`)

// week draws the size of the summary over the compactions of a session of a week.
func week(lines []line) chart {
	c := chart{name: "week", title: "Summary and record of a session of a week", x: "compactions", y: "UTF-16 units"}
	for _, l := range lines {
		writer, ok := strings.CutPrefix(l.name, "week_growth/")
		m := list.FindStringSubmatch(l.detail)
		if !ok || m == nil {
			continue
		}
		for i, s := range strings.Fields(m[1]) {
			n, _ := strconv.ParseFloat(s, 64)
			c.add(map[string]string{"embedded": "embedded summarizer", "llm": "a model that writes nothing"}[writer], float64(5*(i+1)), n)
		}
	}
	return c
}

// prepared draws how many summaries were there in time, over the time that a model takes.
func prepared(lines []line) chart {
	c := chart{name: "prepared", title: "Summaries that are ready at the trigger", x: "seconds that the model takes", y: "share", top: 1}
	seconds := regexp.MustCompile(`^(\d+)s$`)
	for _, l := range lines {
		rest, ok := strings.CutPrefix(l.name, "prepared_share")
		if !ok || strings.Contains(rest, "examples") {
			continue
		}
		name, x := "by forecast", 60.0
		if cut, ok := strings.CutSuffix(rest, "/at_prepare"); ok {
			rest, name = cut, "at 0.7 of the input"
		}
		if m := seconds.FindStringSubmatch(strings.TrimPrefix(rest, "/")); m != nil {
			x, _ = strconv.ParseFloat(m[1], 64)
		} else if rest != "" {
			continue
		}
		c.add(name, x, l.value)
	}
	return c
}

func (c *chart) draw(path string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.BackgroundColor = color.White
	p.X.Min, p.Y.Min = 0, 0
	p.Add(plotter.NewGrid())
	for i, k := range c.curves {
		slices.SortFunc(k.points, func(a, b plotter.XY) int { return int(a.X - b.X) })
		l, dots, err := plotter.NewLinePoints(k.points)
		if err != nil {
			return err
		}
		l.Color, l.Width, l.Dashes = plotutil.Color(i), vg.Points(1.5), plotutil.Dashes(i)
		dots.Color, dots.Shape, dots.Radius = l.Color, draw.CircleGlyph{}, vg.Points(2.5)
		p.Add(l, dots)
		p.Legend.Add(k.name, l, dots)
	}
	p.X.Min, p.Y.Min = 0, 0
	if c.top > 0 {
		p.Y.Max = c.top
	} else {
		p.Y.Max *= 1.25
	}
	p.Legend.Top, p.Legend.Left = c.top == 0, false
	return p.Save(16*vg.Centimeter, 9*vg.Centimeter, path)
}
