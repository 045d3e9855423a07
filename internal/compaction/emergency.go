package compaction

// Emergency is what is known when a provider has refused a call as too long.
type Emergency struct {
	// Stated is the input that the provider says it takes; 0 when it does not say.
	Stated Tokens
	// Available is the input that our own table leaves for the model.
	Available Tokens
	// Estimated is the input of the next call by our own count, corrected by what
	// the provider counted, if it said.
	Estimated Tokens
	// Repetition counts the overflows before this one since a call went through: a
	// turn with a usage, or a change of model, sets it back to 0.
	Repetition int
}

// emergencyShares are the shares of the limit that are aimed for, one for each
// repetition: 0.7 is that of the reference, which repeats it without end; each
// further one is about 0.7 of the one before. Beyond the last the reports say
// something else than that the input is too long.
var emergencyShares = []PPM{700_000, 500_000, 350_000, 250_000, 175_000, 125_000, 87_500, 62_500}

// Target is the input to aim for: a share of the stated limit, else of the
// available input, and in any case at most 0.7 of what is there now. For the
// provider has just refused that: where our count of it lies below the limit, the
// count is too low, and a target between the two would change nothing. It is at
// least 1.
func (e Emergency) Target() Tokens {
	limit := e.Stated
	if limit <= 0 {
		limit = e.Available
	}
	share := emergencyShares[min(max(e.Repetition, 0), len(emergencyShares)-1)]
	target := share.share(limit)
	if e.Estimated > 0 {
		target = min(target, emergencyShares[0].share(e.Estimated))
	}
	return max(target, 1)
}
