package measure

import (
	"compactd/internal/events/dialect"
	"compactd/internal/events/weigh"
)

// Custom has the settings of a profile beside its estimator: a profile of a release of the reference system
// follows it in numbers, tables and roles. Customs are data: no stage branches on the profile in force.
type Custom struct {
	// Windows is the table of context windows.
	Windows func() Windows
	// MinimumTokens is the least saving of clearing tool results.
	MinimumTokens Tokens
	// PlainTools counts the definitions of tools without margin and multiplier.
	PlainTools bool
	// PlaceholderRole is the role of summaries and truncation notices in the dialect of
	// the reference, "" for the user, as in all others.
	PlaceholderRole dialect.Role
}

// customs by profile. A missing profile has those of "default".
var customs = map[string]Custom{
	"default": {Windows: DefaultWindows, MinimumTokens: 20_000},
	"seed":    {Windows: func() Windows { return tableOf(documentedWindows) }, MinimumTokens: 20_000, PlainTools: true, PlaceholderRole: dialect.RoleSystem},
	"current": {Windows: func() Windows { return tableOf(currentWindows) }, MinimumTokens: 500},
}

// CustomOf returns the custom of a profile.
func CustomOf(profile string) Custom {
	if c, ok := customs[profile]; ok {
		return c
	}
	return customs["default"]
}

// Tools estimates definitions of tools by their UTF-16 units.
func (c Custom) Tools(r Rate, units int64) Tokens {
	if c.PlainTools {
		return Tokens(CeilDiv(units, r.TextUnits))
	}
	return r.Text(units)
}

// Measured estimates definitions of tools from their measures.
func (c Custom) Measured(r Rate, s weigh.Size) Tokens {
	if c.PlainTools {
		return c.Tools(r, s.Units)
	}
	return r.Sized(s)
}

// tableOf reads an embedded table, with each provider under its one name.
func tableOf(data []byte) Windows {
	w := Windows{}
	w.join(mustWindows(data), nil)
	return w
}
