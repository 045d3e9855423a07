// Command gitleaks writes the rules of github.com/gitleaks/gitleaks down as a table,
// which package sanitize matches by itself. The library is large, so only
// this module links it.
//
//	go generate ./internal/summarize/sanitize
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"
)

func main() {
	log.SetFlags(0)
	out, err := table()
	if err != nil {
		log.Fatal("gitleaks: ", err)
	}
	if err := os.WriteFile(os.Args[1], out, 0o644); err != nil {
		log.Fatal("gitleaks: ", err)
	}
}

const head = `# Written by tools/gitleaks; do not edit.
#
# The rules are those of github.com/gitleaks/gitleaks v8.30.1:
#
# MIT License
#
# Copyright (c) 2019 Zachary Rice
#
# Permission is hereby granted, free of charge, to any person obtaining a copy
# of this software and associated documentation files (the "Software"), to deal
# in the Software without restriction, including without limitation the rights
# to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
# copies of the Software, and to permit persons to whom the Software is
# furnished to do so, subject to the following conditions:
#
# The above copyright notice and this permission notice shall be included in all
# copies or substantial portions of the Software.
#
# THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
# IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
# FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
# AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
# LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
# OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
# SOFTWARE.

`

// table is the file with all rules that can match a text without a path, in the order of
// their names.
func table() ([]byte, error) {
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		return nil, err
	}
	b := bytes.NewBufferString(head)
	names := slices.Clone(d.Config.OrderedRules)
	slices.Sort(names)
	for _, name := range names {
		r := d.Config.Rules[name]
		if r.Path != nil || r.Regex == nil {
			continue // of files by their names
		}
		fmt.Fprintf(b, "%s %s\n", name, r.Regex)
		if r.Entropy != 0 {
			fmt.Fprintf(b, "\tentropy %s\n", strconv.FormatFloat(r.Entropy, 'g', -1, 64))
		}
		if r.SecretGroup != 0 {
			fmt.Fprintf(b, "\tgroup %d\n", r.SecretGroup)
		}
		for _, a := range r.Allowlists {
			allow(b, a)
		}
	}
	return b.Bytes(), nil
}

// allow writes a list, unless it cannot hold for a text without a path.
func allow(b *bytes.Buffer, a *config.Allowlist) {
	if len(a.Regexes)+len(a.StopWords) == 0 || a.MatchCondition == config.AllowlistMatchAnd {
		return
	}
	fmt.Fprintf(b, "\t%s\n", strings.TrimSpace("allow "+a.RegexTarget))
	for _, re := range a.Regexes {
		fmt.Fprintf(b, "\texpr %s\n", re)
	}
	for line := range slices.Chunk(slices.Sorted(slices.Values(a.StopWords)), 8) {
		fmt.Fprintf(b, "\twords %s\n", strings.Join(line, " "))
	}
}
