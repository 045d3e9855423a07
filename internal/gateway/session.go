package gateway

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"compactd/client/transport"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// sessionHeader names the conversation of a request for gateways alone.
const sessionHeader = "X-Compactd-Session"

// hints are headers by which agents name a conversation.
var hints = []string{"X-Claude-Code-Session-Id", "Session-Id", "Session_id", "X-Session-Id", "X-Session-Affinity"}

// largePrompt is the size of a first prompt, in bytes, that is worth shortening.
const largePrompt = 64 << 10

// sessionOf names the conversation of a call; "" if it is not recorded.
//
// Without a hint the name is a hash of the first prompt and `prompt_cache_key`. It selects where to look; all messages
// decide whether the session continues.
func (g *Gateway) sessionOf(c *transport.Call) string {
	metadata := claudeOf(textOf(c.Body["metadata"], "user_id"))
	if name := c.Header.Get(sessionHeader); name != "" {
		return g.name(c, metadata.user, name)
	}
	root := rootOf(c)
	if root < 0 || root == len(c.Messages)-1 && len(c.Messages[root]) < largePrompt {
		return ""
	}
	if hint := cmp.Or(hinted(c), metadata.session); hint != "" {
		return g.name(c, metadata.user, hint+suffix(c.Header.Get("X-Claude-Code-Agent-Id")))
	}
	digest := events.Format(c.Format).DigestOf([]codec.Raw{codec.Raw(c.Messages[root])})
	key, _ := codec.Text(codec.Raw(c.Body["prompt_cache_key"]))
	return g.name(c, metadata.user, "by-prompt-"+hex.EncodeToString(digest[:8])+suffix(key))
}

func hinted(c *transport.Call) string {
	for _, name := range hints {
		if hint := c.Header.Get(name); hint != "" {
			return hint
		}
	}
	return ""
}

func suffix(s string) string {
	if s == "" {
		return ""
	}
	return "-" + s
}

var plainHint = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,120}$`)

// name is the session of a hint of a principal.
func (g *Gateway) name(c *transport.Call, user, hint string) string {
	who := g.hash(g.principal(c, user))
	if !plainHint.MatchString(hint) {
		hint = g.hash(hint)
	}
	return "gw-" + who + "-" + hint
}

// credentials are the headers in which providers take one.
var credentials = []string{"Authorization", "X-Api-Key", "Api-Key"}

// principal is the sender of a call.
func (g *Gateway) principal(c *transport.Call, user string) string {
	if g.config.Principal != "" {
		if named := c.Header.Get(g.config.Principal); named != "" {
			return named
		}
	}
	for _, name := range []string{"user", "safety_identifier"} {
		named, _ := codec.Text(codec.Raw(c.Body[name]))
		user = cmp.Or(user, named)
	}
	parts := []string{user}
	for _, name := range credentials {
		parts = append(parts, c.Header.Get(name))
	}
	return strings.Join(parts, "\x00")
}

func (g *Gateway) hash(s string) string {
	h := hmac.New(sha256.New, g.config.Secret)
	h.Write([]byte(s))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// rootOf is the index of the first message that is not an instruction, -1 without one.
func rootOf(c *transport.Call) int {
	return slices.IndexFunc(c.Messages, func(m json.RawMessage) bool {
		role := textOf(m, "role")
		return role != "system" && role != "developer"
	})
}

// textOf is a member of an object, "" where it has no such text.
func textOf(object json.RawMessage, name string) string {
	members, _ := codec.ReadObject(codec.Raw(object))
	text, _ := codec.Text(codec.Lookup(members, name))
	return text
}

// claude is the content of metadata.user_id in requests of Claude Code. Other applications name a user there.
type claude struct{ user, session string }

const claudeSession = "_session_"

func claudeOf(id string) claude {
	if session := textOf(json.RawMessage(id), "session_id"); session != "" {
		return claude{session: session}
	}
	if at := strings.LastIndex(id, claudeSession); at >= 0 {
		return claude{session: id[at+len(claudeSession):]}
	}
	return claude{user: id}
}
