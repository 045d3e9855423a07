// A request whose answer a view shows, read again when an event concerns it.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Away, comeback, Refusal, request } from './api'
import { listen, type LiveEvent } from './live'

export interface Resource<T> {
  /** The last answer; it stays while a newer one is read, and when that fails. */
  data: T | undefined
  error: Refusal | undefined
  loading: boolean
  again(): void
}

export interface Following {
  /** Which events mean that the answer has changed. */
  concerns?: (event: LiveEvent) => boolean
  /** Milliseconds after which it is read again anyway. */
  every?: number
}

// Events come in bursts: at most one request in this time, the first at once.
const pace = 400

/** path undefined reads nothing. */
export function useResource<T>(path: string | undefined, following: Following = {}): Resource<T> {
  const [state, set] = useState<{ path?: string | undefined; data?: T | undefined; error?: Refusal | undefined; loading: boolean }>({ loading: false })
  const options = useRef(following)
  options.current = following
  const again = useRef(() => {})

  useEffect(() => {
    if (path === undefined) return
    let aborter: AbortController | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let dirty = false
    let readAt = 0

    const read = async () => {
      timer = undefined
      if (aborter) {
        dirty = true
        return
      }
      dirty = false
      readAt = Date.now()
      const own = (aborter = new AbortController())
      set((s) => ({ ...(s.path === path ? s : {}), path, loading: true }))
      try {
        const data = await request<T>(path, { signal: own.signal })
        if (!own.signal.aborted) set({ path, data, loading: false })
      } catch (err) {
        if (own.signal.aborted) return
        const error = err instanceof Refusal ? err : undefined
        if (!error && !(err instanceof Away)) console.error(err)
        set((s) => ({ ...s, error, loading: false }))
      } finally {
        if (aborter === own) aborter = undefined
        if (dirty && !own.signal.aborted) soon()
      }
    }
    const soon = () => {
      if (timer === undefined) timer = setTimeout(read, Math.max(0, readAt + pace - Date.now()))
    }
    again.current = soon
    void read()
    const unlisten = listen((event) => {
      if (options.current.concerns?.(event)) soon()
    })
    const unfollow = comeback.follow(() => { // an answer to a request of before may never come
      aborter?.abort()
      aborter = undefined
      soon()
    })
    const interval = options.current.every ? setInterval(() => document.hidden || soon(), options.current.every) : undefined
    return () => {
      aborter?.abort()
      clearTimeout(timer)
      clearInterval(interval)
      unlisten()
      unfollow()
    }
  }, [path])

  const own = state.path === path
  return {
    data: own ? state.data : undefined,
    error: own ? state.error : undefined,
    loading: own ? state.loading : path !== undefined,
    again: useCallback(() => again.current(), []),
  }
}
