package syncs

import "sync"

// recent is a map of at most most keys: a put beyond that removes all the others first.
type recent[K comparable, V any] struct {
	most int

	mu  sync.Mutex // guards all
	all map[K]V
}

func (r *recent[K, V]) put(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || len(r.all) >= r.most {
		r.all = map[K]V{}
	}
	r.all[k] = v
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
	delete(r.all, k)
}
