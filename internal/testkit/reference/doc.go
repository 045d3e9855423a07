// Package reference compares answers of the product with recorded ones of the reference system.
//
//	var suite = reference.Suite{
//		Answers: map[string]func(*reference.Case) any{"estimateTokens": answerEstimate},
//		Rules:   []reference.Rule{reference.NewRule("A15", "estimateTokens", "runes stay whole", reference.Always, isWhole)},
//	}
//
//	func TestConformance(t *testing.T) { suite.Run(t) }
//
// Each package has the suite of the functions that it answers, beside its code. The records are the
// answers of two releases of the reference; COMPACTD_VECTORS names another directory of records.
//
// # Guarantees
//
// Each difference is due to a rule, which states what our answer is instead; a difference without a
// rule fails, as does a rule whose check does. The report of a suite is compared with
// testdata/conformance.report of its package.
//
// # Concurrency
//
// A suite is for one test at a time.
//
// # On failure
//
// A record that cannot be read ends the test. Helpers that are given something else than JSON panic.
package reference
