// Requests to the worker that served this page. The operator's token stays in this tab.
import { store } from './store'

const place = 'compactd.token'

export type Door = 'open' | 'no-token' | 'wrong-token'

/** Whether the worker takes our token. */
export const door = store<Door>('open')

/** Whether the worker answers at all; the time of the next try while it does not. */
export const away = store<number | undefined>(undefined)

/** Counts the times that the worker came back or a token was set: what is shown is read again. */
export const comeback = store(0)

let token = sessionStorage.getItem(place) ?? ''

export const hasToken = (): boolean => token !== ''

export function setToken(text: string): void {
  token = text.trim()
  if (token) sessionStorage.setItem(place, token)
  else sessionStorage.removeItem(place)
  door.set('open')
  comeback.set(comeback.get() + 1)
}

/** A refusal of the worker; act on the code. */
export class Refusal extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly hint = '') {
    super(message)
  }
}

/** The worker gave no answer. */
export class Away extends Error {}

export interface Options {
  method?: 'GET' | 'POST'
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** Sends a request and returns its response, whatever the status, except a refused token. */
export async function send(path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers }
  if (token) headers.Authorization = `Bearer ${token}`
  if (options.body !== undefined) headers['Content-Type'] = 'application/json'
  const init: RequestInit = { method: options.method ?? 'GET', headers, cache: 'no-store', credentials: 'omit', redirect: 'error' }
  if (options.body !== undefined) init.body = JSON.stringify(options.body)
  if (options.signal) init.signal = options.signal
  let response: Response
  try {
    response = await fetch(path, init)
  } catch (err) {
    throw unanswered(err, options)
  }
  if (response.status === 401) door.set(token ? 'wrong-token' : 'no-token')
  else door.set('open')
  return response
}

// The error of a request without a whole answer: its own where the caller ended it.
function unanswered(err: unknown, options: Options): unknown {
  if (options.signal?.aborted) return err
  lose()
  return new Away('The worker does not answer.')
}

/** Sends a request and returns the JSON of its answer; a refusal is thrown. */
export async function request<T>(path: string, options: Options = {}): Promise<T> {
  const response = await send(path, options)
  const text = await response.text().catch((err: unknown) => { throw unanswered(err, options) })
  if (response.ok) {
    regain()
    return JSON.parse(text) as T
  }
  throw refusal(response.status, text)
}

export function refusal(status: number, text: string): Refusal {
  try {
    const { code, message, hint } = JSON.parse(text) as { code?: string; message?: string; hint?: string }
    return new Refusal(status, code ?? 'unknown', message ?? hint ?? `The worker answered ${status}.`, hint)
  } catch {
    return new Refusal(status, 'unknown', `The worker answered ${status}.`)
  }
}

// While the worker is away it is tried again: after 0.5 s, and at most 8 s later each time.
let waited = 0
let timer: ReturnType<typeof setTimeout> | undefined
const longest = 10_000 // that a try takes

export function lose(): void {
  if (timer !== undefined) return
  waited = Math.min(waited ? waited * 2 : 500, 8000)
  away.set(Date.now() + waited)
  timer = setTimeout(probe, waited)
}

export function probeNow(): void {
  clearTimeout(timer)
  void probe()
}

async function probe(): Promise<void> {
  timer = undefined
  try {
    const response = await fetch('/healthz', { cache: 'no-store', headers: token ? { Authorization: `Bearer ${token}` } : {}, signal: AbortSignal.timeout(longest) })
    if (response.status >= 500) throw new Away()
    regain()
  } catch {
    lose()
  }
}

function regain(): void {
  waited = 0
  if (away.get() === undefined) return
  clearTimeout(timer)
  timer = undefined
  away.set(undefined)
  comeback.set(comeback.get() + 1)
}
