package compaction_test

// deviation is a rule by which our answer differs from the recorded one: a row of
// the features decides otherwise.
type deviation struct {
	row, function, reason string
	// applies says which cases the rule is about; check what is wrong with our
	// answer to one, "" if it is what the row asks for.
	applies func(c *vectorCase, want, got any) bool
	check   func(c *vectorCase, want, got any) string
}

func (d *deviation) name() string { return d.row + " " + d.function + " " + d.reason }

var deviations = []deviation{}
