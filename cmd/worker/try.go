package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// printTry prints two commands that a person can run against this worker, which is ready
// and was started as self. They are no log events: a log in JSON has none of them.
func (f *flags) printTry(to io.Writer, self, nats, http string) {
	publisher := publisherBeside(self)
	at := append([]string{"--nats", reachableURL(nats)}, f.Args()...)
	second := append([]string{publisher, "sessions"}, at...)
	if http != "" {
		second = f.probe(self, reachable(http))
	}
	fmt.Fprintf(to, "try: %s\ntry: %s\n", command(append([]string{publisher, "watch"}, at...)), command(second))
}

// probe is a command that checks whether this worker is ready. Where a token is needed, it
// is one that takes the token from the environment or a file.
func (f *flags) probe(self, http string) []string {
	switch {
	case f.HTTPToken == "":
		return []string{"curl", "http://" + http + "/readyz"}
	case f.HTTPTokenFile != "":
		return []string{self, "ready", "--http", http, "--http-token-file", string(f.HTTPTokenFile)}
	default:
		return []string{self, "ready", "--http", http}
	}
}

// publisherBeside is the publisher as this program was started: packages install both with a prefix.
func publisherBeside(worker string) string {
	name := "publisher"
	if strings.HasPrefix(filepath.Base(worker), "compactd-") {
		name = "compactd-" + name
	}
	dir, _ := filepath.Split(worker) // "" where the shell has found it on its path
	return dir + name
}

// reachable is the address at which this machine reaches one that is listened on: loopback
// where that is every address.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}

func reachableURL(addr string) string {
	u, err := url.Parse(addr)
	if err != nil { // a list of servers
		return addr
	}
	u.Host = reachable(u.Host)
	return u.String()
}

// command is a command line for a shell.
func command(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = quote(a)
	}
	return strings.Join(quoted, " ")
}

var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quote makes one word of a text.
func quote(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
