package syncs

import "sync"

// recent is a map of at most most bytes: a put beyond that removes all the others first. A value that is larger
// alone is not held.
type recent[K comparable, V sized] struct {
	most int

	mu   sync.Mutex // guards the fields below
	all  map[K]V
	held int // bytes
}

// sized estimates its memory.
type sized interface{ bytes() int }

// keyBytes estimates the memory of a key, an address of usual length, and of its place in a map.
const keyBytes = 256

func (r *recent[K, V]) put(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(k)
	n := keyBytes + v.bytes()
	if n > r.most {
		return
	}
	if r.all == nil || r.held+n > r.most {
		r.all, r.held = map[K]V{}, 0
	}
	r.all[k] = v
	r.held += n
}

func (r *recent[K, V]) get(k K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.all[k]
	return v, ok
}

func (r *recent[K, V]) drop(k K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(k)
}

// remove removes a key. The caller holds mu.
func (r *recent[K, V]) remove(k K) {
	if v, ok := r.all[k]; ok {
		r.held -= keyBytes + v.bytes()
		delete(r.all, k)
	}
}
