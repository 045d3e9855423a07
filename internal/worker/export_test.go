package worker

import "compactd/internal/worker/observe"

// Board is what the worker shows of itself.
func (w *Worker) Board() *observe.Board { return w.board }
