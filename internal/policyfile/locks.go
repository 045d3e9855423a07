package policyfile

import (
	"maps"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"compactd/internal/compaction/policy"
)

// locks are the paths of fields that sessions cannot set, each with the place that states it.
type locks map[string]place

// add locks the fields that a path covers.
func (k locks) add(path string, at place, prefix string, found *problems) {
	fields := policy.Fields(path)
	if len(fields) == 0 {
		text := prefix + path + " is no field of the policy"
		if meant := nearest(path, paths()); meant != "" {
			text += "; did you mean " + meant + "?"
		}
		found.add(at, "%s", text)
	}
	for _, f := range fields {
		k[f] = at
	}
}

// paths lists the paths that a lock can name: fields and groups of them.
func paths() (out []string) {
	for path := range new(policy.Policy).Values() {
		for path != "" {
			out = append(out, path)
			path = path[:max(strings.LastIndexByte(path, '.'), 0)]
		}
	}
	return out
}

// readLocks reads a list of paths.
func (r *reader) readLocks(e entry) locks {
	k := locks{}
	list, ok := e.value.(*ast.SequenceNode)
	if !ok {
		r.problems.add(e.at, "%slocked must be a list of fields, such as [summarize.enabled]", r.prefix)
		return k
	}
	for _, v := range list.Values {
		k.add(v.GetToken().Value, r.at(v), r.prefix+"locked: ", r.problems)
	}
	return k
}

// flagLocks are the locks and unlocks of the command line.
type flagLocks struct{ lock, unlock locks }

// locks reads the locks of the command line; fields that it sets are locked.
func (o Options) locks(set locks, found *problems) flagLocks {
	k := flagLocks{lock: maps.Clone(set), unlock: locks{}}
	for _, path := range o.Lock {
		k.lock.add(path, place{source: "--lock"}, "", found)
	}
	for _, path := range o.Unlock {
		k.unlock.add(path, place{source: "--unlock"}, "", found)
	}
	return k
}

// lock puts the locks of the command line over those of a file, and all into the policy.
func (l *layers) lock(flags flagLocks) {
	all := locks{}
	maps.Copy(all, l.locks)
	for path, at := range flags.lock {
		if _, ok := all[path]; !ok {
			all[path] = at
		}
	}
	maps.DeleteFunc(all, func(path string, _ place) bool { _, ok := flags.unlock[path]; return ok })
	l.locks, l.policy.Locked = all, nil
	for path := range l.policy.Values() {
		if _, ok := all[path]; ok {
			l.policy.Locked = append(l.policy.Locked, path)
		}
	}
}

// lockNote states that a field is locked, and the place of the lock if another place set the field.
func (l *layers) lockNote(path string) string {
	at, ok := l.locks[path]
	switch {
	case !ok:
		return ""
	case reflect.DeepEqual(at, l.places[path]):
		return ", locked"
	default:
		return ", locked by " + at.String()
	}
}
