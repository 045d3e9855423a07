// Package policyfile turns what an operator writes into the config that sessions
// are decided with: a preset's name or a file, settings on the command line, and
// overrides for tenants and for windows.
//
//	s, err := policyfile.Load(policyfile.Options{Policy: "policy.yaml"})
//	if err != nil {
//		return err // every problem, with its line
//	}
//	worker.Config{Compaction: s.Config}
//	s.Write(os.Stdout, "acme") // the policy of a tenant, and where it comes from
//
// A file is YAML, or JSON, which is YAML too:
//
//	preset: claude
//	threshold_cap: 0.8
//	prune:
//	  protected_tools: [skill, plan]
//	windows:
//	  openai:
//	    gpt-5: 272000
//	tenants:
//	  acme:
//	    target: 0.5
//
// # Precedence
//
// The policy that a session sends goes before its tenant's, and that before the
// worker's. The worker's is a preset, then the file, then settings one by one, then
// the threshold and the switch of the command line. A tenant's is the worker's, or
// a preset if it names one, with its own fields set.
//
// Fields that the file or the command line locks keep that value whatever a session
// sends.
//
// # Guarantees
//
// Nothing is ignored: unknown and duplicate keys, wrong types, values out of range,
// aliases and further documents are errors, all of them reported at once. Write prints
// a file with the same meaning.
//
// # Concurrency
//
// Settings are immutable.
//
// # On failure
//
// An error lists what is wrong and where; nothing is taken over.
//
// See docs/adr/0058 for the libraries that do less.
package policyfile
