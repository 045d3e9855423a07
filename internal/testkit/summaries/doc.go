// Package summaries has ranges of sessions to summarize, models in this process, and checks of
// summaries, for the tests of all summarizers.
//
//	in := summarize.Input{Messages: summaries.BusyRange(1, 60), MaxUnits: 20_000}
//	s, err := llm.New(summaries.Echo()).Summarize(t.Context(), in)
//	summaries.CheckSize(t, s, in.MaxUnits)
package summaries
