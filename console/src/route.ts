// The address of a view is in the hash: #/sessions/TENANT/SESSION/TAB?generation=3.
import { store, useStore } from './store'

export interface Route {
  path: string[]
  query: URLSearchParams
}

function read(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?')
  return { path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

const route = store(read())
addEventListener('hashchange', () => route.set(read()))

export const useRoute = (): Route => useStore(route)

/** The address of a view, for a link. Names may hold any character. */
export function link(path: string[], query: Record<string, string | number | undefined> = {}): string {
  const rest = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== '') rest.set(name, String(value))
  const text = rest.toString()
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`
}

/** Changes the query of the present view without a step in the browser's history. */
export function replaceQuery(changes: Record<string, string | number | undefined>): void {
  const { path, query } = route.get()
  const all: Record<string, string | number | undefined> = { ...Object.fromEntries(query), ...changes }
  history.replaceState(null, '', link(path, all))
  route.set(read())
}
