package main

import (
	"strings"
	"testing"

	"compactd/internal/ops/access"
)

// Each line printed to try is a command of a shell, for the programs as they are installed,
// with the addresses and the identity of this worker and without its secrets.
func TestTry(t *testing.T) {
	for _, c := range []struct {
		self       string
		flags      flags
		nats, http string
		want       string
	}{
		{
			"bin/worker",
			flags{},
			"nats://127.0.0.1:4222", "127.0.0.1:8223",
			"try: bin/publisher watch --nats nats://127.0.0.1:4222\ntry: curl http://127.0.0.1:8223/readyz\nconsole: http://127.0.0.1:8223/\n",
		},
		{
			"/usr/bin/compactd-worker",
			flags{HTTPToken: "canary"},
			"nats://0.0.0.0:4222", "[::]:8223",
			"try: /usr/bin/compactd-publisher watch --nats nats://127.0.0.1:4222\ntry: /usr/bin/compactd-worker ready --http 127.0.0.1:8223\nconsole: http://127.0.0.1:8223/\n",
		},
		{
			"worker",
			flags{HTTPToken: "canary", HTTPTokenFile: "the token", Flags: access.Flags{User: "me", Password: "canary", TLSCA: "it's.pem"}},
			"tls://a:4222,tls://b:4222", "[::1]:8223",
			`try: worker doctor --nats tls://a:4222,tls://b:4222 --user me --tls-ca 'it'\''s.pem'` + "\n" +
				`try: worker ready --http '[::1]:8223' --http-token-file 'the token'` + "\nconsole: http://[::1]:8223/\n",
		},
		{
			"/opt/my tools/w",
			flags{Flags: access.Flags{Creds: "a.creds", TLSCert: "c", TLSKey: "k"}},
			"nats://b", "",
			"try: '/opt/my tools/w' doctor --nats nats://b --creds a.creds --tls-cert c --tls-key k\n" +
				"try: '/opt/my tools/w' inspect --nats nats://b --creds a.creds --tls-cert c --tls-key k\n",
		},
	} {
		var b strings.Builder
		if c.flags.printTry(&b, c.self, c.nats, c.http); b.String() != c.want {
			t.Errorf("%s prints\n%swant\n%s", c.self, b.String(), c.want)
		}
	}
}
