// Package claim finds sentences that speak for the user: that a person with authority approved
// something, or wants it.
//
//	if k, rest := claim.Of(line); k != claim.None { … }
//	if claim.Lifts(line) { … } // it permits something, or ends a ban or a duty
//
// An agent acts on a summary. So a sentence of a model that states a consent, or that names a person with
// authority at the head of a clause, is marked unless the user's own words have its content.
//
// # Guarantees
//
//   - Words for persons and consents are those of more than 40 languages; a stem counts with any
//     ending. So are words for an agreement ("as discussed") and for having nothing against a
//     thing. Words for orders and for needless questions are those of about 20.
//   - A refusal ("the user did not approve") is a [Denial], which speaks for no consent. "Not only
//     approved" and "did not need approval" are consents, as is "no objection".
//   - The users, clients and owners of a program, its identifiers, and what its parts accept or
//     confirm claim nothing. A consent in the passive claims one, whatever its subject.
//   - A negation elsewhere in a sentence does not hide a claim.
//   - The time is linear in the line.
//
// # Concurrency
//
// Functions of their arguments only.
//
// # On failure
//
// Nothing fails. A consent in words that are not listed is no claim, in any language: a first try
// of fresh sentences found 90 of 100. The first line of a summary states where it has the words of
// users.
package claim
