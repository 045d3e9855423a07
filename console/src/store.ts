// A value that views follow. No library: a page has a handful of them.
import { useEffect, useState } from 'preact/hooks'

export interface Store<T> {
  get(): T
  set(value: T): void
  follow(listener: () => void): () => void
}

export function store<T>(value: T): Store<T> {
  const listeners = new Set<() => void>()
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return
      value = next
      for (const listener of [...listeners]) listener()
    },
    follow(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export function useStore<T>(from: Store<T>): T {
  const [, again] = useState(0)
  useEffect(() => from.follow(() => again((n) => n + 1)), [from])
  return from.get()
}
