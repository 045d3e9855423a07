// Outcomes as the worker publishes them, over one connection. It is read with fetch, since an
// EventSource cannot send a token. The id of an event is its sequence in OUTCOMES, so a lost
// connection resumes behind the last event that was read.
import { away, comeback, door, lose, send } from './api'
import { store } from './store'

export interface LiveEvent {
  id: string
  kind: string
  data: unknown
}

type Listener = (event: LiveEvent) => void

const listeners = new Set<Listener>()

/** Whether events arrive now; 'refused' where the worker has no connection left for them. */
export const live = store<boolean | 'refused'>(false)

export function listen(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

let last = ''
let running: AbortController | undefined

/** Follows the events at a path until the page is left. */
export function follow(path: string): void {
  const begin = () => {
    running?.abort()
    if (document.hidden) return
    running = new AbortController()
    void read(path, running)
  }
  comeback.follow(begin)
  begin()
  // A browser has six connections to a worker for all tabs, so one in the background holds none.
  // Without an event to resume behind, all is read again.
  document.addEventListener('visibilitychange', () => (document.hidden || last ? begin() : comeback.set(comeback.get() + 1)))
  addEventListener('pagehide', () => running?.abort())
  addEventListener('pageshow', (e) => e.persisted && comeback.set(comeback.get() + 1))
}

// A connection without a sign of life for this long is taken as lost.
const idle = 60_000

// A refused connection is tried again after this time; views read again by themselves meanwhile.
const pause = 10_000

async function read(path: string, own: AbortController): Promise<void> {
  let watchdog: ReturnType<typeof setTimeout> | undefined
  const alive = () => {
    clearTimeout(watchdog)
    watchdog = setTimeout(() => { own.abort(); lose() }, idle)
  }
  try {
    alive()
    const headers: Record<string, string> = { Accept: 'text/event-stream' }
    if (last) headers['Last-Event-ID'] = last
    const response = await send(path, { headers, signal: own.signal })
    if (response.status === 410) {
      last = '' // earlier outcomes have expired: what is shown is read again
      comeback.set(comeback.get() + 1)
      return
    }
    if (!response.ok || !response.body) {
      if (response.status >= 500) lose()
      else if (door.get() === 'open') {
        live.set('refused')
        setTimeout(() => own === running && void read(path, own), pause)
      }
      return
    }
    live.set(true)
    const parse = parser()
    const decoder = new TextDecoder()
    const reader = response.body.getReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      alive()
      for (const event of parse(decoder.decode(value, { stream: true }))) {
        if (event.id) last = event.id
        if (event.data === undefined) continue // a sign of life
        for (const listener of [...listeners]) listener(event)
      }
    }
    if (own === running) lose()
  } catch {
    if (own === running && !own.signal.aborted && away.get() === undefined) lose()
  } finally {
    clearTimeout(watchdog)
    if (own === running && live.get() === true) live.set(false)
  }
}

/** Splits a stream of text into server-sent events. */
export function parser(): (text: string) => LiveEvent[] {
  let rest = ''
  return (text) => {
    const blocks = (rest + text).replace(/\r\n?/g, '\n').split('\n\n')
    rest = blocks.pop() ?? ''
    return blocks.flatMap((block) => {
      const fields = { id: '', event: 'message', data: '' }
      for (const line of block.split('\n')) {
        const at = line.indexOf(':')
        if (at <= 0) continue
        const name = line.slice(0, at)
        const value = line.slice(at + 1).replace(/^ /, '')
        if (name === 'data') fields.data += fields.data ? `\n${value}` : value
        else if (name === 'id' || name === 'event') fields[name] = value
      }
      if (!fields.data) return fields.id ? [{ id: fields.id, kind: '', data: undefined }] : []
      try {
        return [{ id: fields.id, kind: fields.event, data: JSON.parse(fields.data) as unknown }]
      } catch {
        return []
      }
    })
  }
}
