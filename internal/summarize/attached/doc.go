// Package attached separates the words of a user from the text of others in the same message:
// files, results of tools, mails, logs and pages that a program or the user put there.
//
//	for _, p := range attached.Split(text) {
//		if p.Own { … }
//	}
//
// The user's own words are short plain prose: lines that begin with a word, at the head of a message, or
// after the end of a structure that has one. A mark that no sentence has attaches all text below it: a tag,
// fence, quote or bracket, a label, title, file name, time, number or speaker, a line that rules off, a
// column, an indentation, or a sentence that announces other text, or requests a translation or an opinion of
// it. A message with the sentence of a program is attached too: one about the user as another person, about
// the agent's calls, steps and conversation, or about the form of its answers. A mark without an end holds to
// the end of the message, and a structure to the last of its ends, since the text inside may contain one too.
// After a quotation or fence at the head of a message the user's words begin with a short answer.
// See docs/adr/0050.
//
// # Guarantees
//
//   - The parts of a message are its text, in order, without a gap.
//   - Where it is not clear who wrote a line, it is attached.
//   - A message with more than 4,000 bytes of own text, or with the form of a mail, is
//     attached as a whole.
//   - The time is linear in the text.
//
// # Concurrency
//
// Functions of their arguments only.
//
// # On failure
//
// Nothing fails. Text of others is taken for the user's if nothing around it shows otherwise: a sentence that
// was pasted bare, or a program's in words that are not listed.
package attached
