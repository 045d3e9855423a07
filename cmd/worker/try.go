package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"runtime"
	"strings"

	"github.com/rs/zerolog"

	"compactd/internal/ops/cli"
)

// printTry prints two commands that a person can run against this worker, which is ready
// and was started as self, and where its console is. Where the server has users, they are commands that the user of
// a worker may run. They are no log events: a log in JSON has none of them.
func (f *flags) printTry(to io.Writer, self, nats, http string) {
	publisher := cli.Beside(self, "publisher")
	at := append([]string{"--nats", reachableURL(nats)}, f.Args()...)
	first, second := append([]string{publisher, "watch"}, at...), append([]string{publisher, "sessions"}, at...)
	if f.User != "" || f.Creds != "" || f.TLSCert != "" {
		first, second = append([]string{self, "doctor"}, at...), append([]string{self, "inspect"}, at...)
	}
	if http != "" {
		second = f.probe(self, reachable(http))
	}
	fmt.Fprintf(to, "try: %s\ntry: %s\n", command(first), command(second))
	if http != "" {
		fmt.Fprintf(to, "console: %s\n", consoleURL(http))
	}
}

// consoleURL is the URL, on this machine, of the console of a worker that listens on an address.
func consoleURL(http string) string { return "http://" + reachable(http) + "/" }

// openConsole opens the console in a browser, if that is requested. A failure is logged, with the address.
func (f *flags) openConsole(log zerolog.Logger, http string) {
	if !f.Open {
		return
	}
	if http == "" {
		log.Warn().Msg("--open: there is no console with --http off")
		return
	}
	url, opener := consoleURL(http), "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	browser := exec.Command(opener, url)
	if err := browser.Start(); err != nil {
		log.Warn().Err(err).Str("url", url).Msg("--open: no browser was opened, see the address")
		return
	}
	go func() { _ = browser.Wait() }() // it may outlast the worker
	log.Info().Str("url", url).Msg("console opened")
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
		quoted[i] = cli.Word(a)
	}
	return strings.Join(quoted, " ")
}
