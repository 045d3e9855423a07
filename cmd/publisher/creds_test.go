package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/rogpeppe/go-internal/testscript"
)

// trusted starts a server that identifies its users by credentials. $TRUSTED is its
// address, worker.creds and agent.creds are files of its users; agent.creds may not
// publish for the tenant globex, narrow.creds may not send requests. foreign.creds is of an account unknown to it.
func trusted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: trusted")
	}
	operator, err := nkeys.CreateOperator()
	ts.Check(err)
	resolver := &server.MemAccResolver{}
	known, err := newAccount(operator, true)
	ts.Check(err)
	ts.Check(resolver.Store(known.id, known.token))
	system, err := newAccount(operator, false)
	ts.Check(err)
	ts.Check(resolver.Store(system.id, system.token))
	foreign, err := newAccount(operator, true)
	ts.Check(err)
	dir := ts.MkAbs(".")
	ts.Check(errors.Join(
		known.user(filepath.Join(dir, "worker.creds"), ""),
		known.user(filepath.Join(dir, "agent.creds"), "session.*.globex.*"),
		known.user(filepath.Join(dir, "narrow.creds"), "compactd.>"),
		foreign.user(filepath.Join(dir, "foreign.creds"), ""),
	))
	id, err := operator.PublicKey()
	ts.Check(err)
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: ts.MkAbs("store"), MaxPayload: 8 << 20,
		TrustedOperators: []*jwt.OperatorClaims{jwt.NewOperatorClaims(id)}, AccountResolver: resolver, SystemAccount: system.id, JetStreamMaxStore: 1 << 50,
	})
	ts.Check(err)
	s.Start()
	ts.Defer(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		ts.Fatalf("the server takes no connections")
	}
	ts.Setenv("TRUSTED", s.ClientURL())
}

// account is one of the server, with JetStream or without.
type account struct {
	key       nkeys.KeyPair
	id, token string
}

func newAccount(operator nkeys.KeyPair, streams bool) (a account, err error) {
	if a.key, err = nkeys.CreateAccount(); err != nil {
		return a, err
	}
	if a.id, err = a.key.PublicKey(); err != nil {
		return a, err
	}
	claims := jwt.NewAccountClaims(a.id)
	if streams {
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: jwt.NoLimit, MemoryStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	}
	a.token, err = claims.Encode(operator)
	return a, err
}

// user writes the credentials of a user who may not publish on a subject.
func (a *account) user(file, denied string) error {
	key, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	id, err := key.PublicKey()
	if err != nil {
		return err
	}
	claims := jwt.NewUserClaims(id)
	if denied != "" {
		claims.Pub.Deny.Add(denied)
	}
	token, err := claims.Encode(a.key)
	if err != nil {
		return err
	}
	seed, err := key.Seed()
	if err != nil {
		return err
	}
	data, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
