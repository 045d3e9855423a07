// The frame around the views: navigation, the state of the connection, and the token.
import { useEffect, useState } from 'preact/hooks'
import { away, door, hasToken, probeNow, setToken, type Door } from './api'
import { follow, live } from './live'
import { useResource } from './resource'
import { nameOf } from './names'
import { link, useRoute } from './route'
import { useStore } from './store'
import type { Health } from './types'
import { FleetView } from './views/fleet'
import { SessionView } from './views/session'
import { SessionsView } from './views/sessions'
import { TenantsView } from './views/tenants'

const views: [string, string][] = [['sessions', 'Sessions'], ['tenants', 'Tenants'], ['fleet', 'Fleet']]

follow('/v1/events')

export function App() {
  const { path } = useRoute()
  const state = useStore(door)
  const health = useResource<Health>('/v1/health', { every: 15_000 })
  const view = path[0] === 's' ? 'sessions' : (path[0] ?? 'sessions')
  const title = path[0] === 's' && path[2] ? nameOf(path[2]) : (views.find(([name]) => name === view)?.[1] ?? 'Not found')
  useEffect(() => {
    document.title = `${title.slice(0, 80)} · compactd`
  }, [title])

  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById('main')?.focus() }}>Skip to the view</a>
      <header class="top">
        <a class="brand" href={link(['sessions'])} aria-label="compactd"><img src="icon.svg" alt="" />compactd</a>
        <nav class="nav" aria-label="Views">
          {views.map(([name, text]) => (
            <a href={link([name])} aria-current={name === view ? 'page' : undefined} key={name}>{text}</a>
          ))}
        </nav>
        <Connection health={health.data} />
      </header>
      <AwayBanner />
      <main class="main" id="main" tabIndex={-1}>{state === 'open' ? <View path={path} /> : <TokenForm state={state} />}</main>
    </div>
  )
}

function View({ path }: { path: string[] }) {
  const [name = 'sessions', tenant, session, tab] = path
  switch (name) {
    case 'sessions':
      return <SessionsView />
    case 's':
      if (tenant && session) return <SessionView key={`${tenant}/${session}`} tenant={tenant} session={session} tab={tab ?? 'time'} />
      return <SessionsView />
    case 'tenants':
      return <TenantsView />
    case 'fleet':
      return <FleetView />
  }
  return (
    <div class="empty">
      <strong>There is no such view.</strong>
      <a href={link(['sessions'])}>Sessions</a>
    </div>
  )
}

function Connection({ health }: { health: Health | undefined }) {
  const lost = useStore(away)
  const events = useStore(live)
  const state = useStore(door)
  const [kind, text] = lost !== undefined ? ['bad', 'Worker away'] : state !== 'open' ? ['warn', 'Token required'] : events === true ? ['good', 'Live'] : events ? ['warn', 'Polling'] : ['warn', 'Connecting']
  return (
    <div class="state">
      <span role="status" data-state={text}><i class={`dot ${kind}`} aria-hidden="true" />{text}</span>
      {health && <span class="wide-only mono" title={health.owner}>{health.version}</span>}
      {hasToken() && <button type="button" class="button plain" onClick={() => setToken('')}>Remove token</button>}
    </div>
  )
}

function AwayBanner() {
  const until = useStore(away)
  const [, tick] = useState(0)
  useEffect(() => {
    if (until === undefined) return
    const timer = setInterval(() => tick((n) => n + 1), 500)
    return () => clearInterval(timer)
  }, [until])
  if (until === undefined) return null
  const seconds = Math.max(0, Math.ceil((until - Date.now()) / 1000))
  return (
    <div class="banner" role="alert">
      The worker does not answer. The figures below may be old. Next try {seconds ? `in ${seconds} s` : 'now'}.{' '}
      <button type="button" class="button plain" onClick={probeNow}>Try now</button>
    </div>
  )
}

function TokenForm({ state }: { state: Door }) {
  const [text, setText] = useState('')
  return (
    <form class="door card" onSubmit={(e) => { e.preventDefault(); setToken(text) }}>
      <header><h1>Token required</h1></header>
      <div class="body stack">
        <p class="muted">This worker answers operators with its token: the value of <code>COMPACTD_HTTP_TOKEN</code>, or of the file of <code>--http-token-file</code>. It stays in this tab until you close it.</p>
        {state === 'wrong-token' && <p class="outcome bad" role="alert">The worker refused this token.</p>}
        <label class="field">
          <span>Token</span>
          <input class="input" type="password" name="token" autocomplete="off" spellcheck={false} value={text} onInput={(e) => setText(e.currentTarget.value)} required />
        </label>
        <div class="actions"><button type="submit" class="button primary">Continue</button></div>
      </div>
    </form>
  )
}
