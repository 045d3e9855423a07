package embedded

import (
	"fmt"
	"slices"

	"github.com/nats-io/nats-server/v2/conf"
)

// EmptyPasswords lists the users in a configuration file of nats-server, and in included files, that
// have an empty password or token. Any client may log in as one of them.
func EmptyPasswords(file string) ([]string, error) {
	found, err := conf.ParseFile(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	var users []string
	walk(found, func(block map[string]any) {
		for _, key := range []string{"password", "pass", "token"} {
			if text, ok := block[key].(string); ok && text == "" {
				users = append(users, nameOf(block))
			}
		}
	})
	slices.Sort(users)
	return slices.Compact(users), nil
}

// nameOf returns the user of a block of a configuration.
func nameOf(block map[string]any) string {
	for _, key := range []string{"user", "username"} {
		if name, ok := block[key].(string); ok {
			return name
		}
	}
	return "(all)"
}

// walk calls fn for every block within a value of a configuration.
func walk(v any, fn func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		fn(v)
		for _, inner := range v {
			walk(inner, fn)
		}
	case []any:
		for _, inner := range v {
			walk(inner, fn)
		}
	}
}
