package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"

	"compactd/internal/testkit/certs"
)

// secure starts the server of deploy/cluster with TLS, accounts and users, whose
// passwords are of-the-USER. $SECURE is its address; ca.pem and other.pem are two
// authorities, of which the first has signed its certificate.
func secure(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: secure")
	}
	dir := ts.MkAbs("broker")
	ts.Check(os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "deploy", "cluster"))))
	ts.Check(certificates(ts.MkAbs(".")))
	ts.Check(certs.Secrets(filepath.Join(dir, "secrets"), "system", "worker", "operator", "monitor", "edge", "acme", "globex"))
	common := filepath.Join(dir, "server.conf")
	text, err := os.ReadFile(common)
	ts.Check(err)
	ts.Check(os.WriteFile(common, bytes.ReplaceAll(text, []byte(`"certs/`), []byte(`"`+ts.MkAbs(".")+`/`)), 0o600)) // the paths are relative to the directory of the server
	o, err := server.ProcessConfigFile(filepath.Join(dir, "single.conf"))
	ts.Check(err)
	o.Host, o.Port, o.HTTPHost, o.HTTPPort = "127.0.0.1", -1, "", 0
	o.StoreDir, o.NoSigs, o.NoLog = ts.MkAbs("store"), true, true
	s, err := server.NewServer(o)
	ts.Check(err)
	s.Start()
	ts.Defer(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		ts.Fatalf("the server takes no connections")
	}
	ts.Setenv("SECURE", s.ClientURL())
}

func certificates(dir string) error {
	ca, err := certs.NewAuthority(dir, "ca")
	if err != nil {
		return err
	}
	_, other := certs.NewAuthority(dir, "other")
	return errors.Join(ca.Issue("server"), other)
}
