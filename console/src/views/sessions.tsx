// Sessions, fullest first.
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Away, comeback, Refusal, request } from '../api'
import { ago, brief, count, percent, some } from '../format'
import { listen } from '../live'
import { useMedia } from '../media'
import { shown } from '../names'
import { BulkDialog, type Bulk } from '../parts/actions'
import { Fill, FillKey } from '../parts/fill'
import { Search } from '../parts/search'
import { Nothing } from '../parts/state'
import { Virtual } from '../parts/virtual'
import { link, replaceQuery, useRoute } from '../route'
import type { SessionList, SessionRow } from '../types'
import { levelTag, reason } from '../words'

const sorts: [string, string][] = [
  ['fill', 'fullest first'], ['remaining', 'next to be compacted'], ['growth', 'fastest growing'], ['input', 'most tokens'], ['turns', 'most turns'],
  ['generation', 'most compactions'], ['saved', 'most saved'], ['last_turn', 'latest turn'], ['name', 'name'],
]
const levels = ['ok', 'info', 'warning', 'error', 'compacting', 'blocking']

const keyOf = (row: SessionRow): string => `${row.tenant}/${row.session}`

export function SessionsView() {
  const { query } = useRoute()
  const tenant = query.get('tenant') ?? '*'
  const sort = query.get('sort') ?? 'fill'
  const level = query.get('level') ?? ''
  const text = query.get('text') ?? ''
  const list = useSessions({ tenant, sort, level, text })
  const narrow = useMedia('(max-width: 760px)')
  const [picked, setPicked] = useState<ReadonlyMap<string, SessionRow>>(new Map())
  const [bulk, setBulk] = useState<Bulk>()

  const pick = (row: SessionRow, on: boolean) => {
    setPicked((before) => {
      const next = new Map(before)
      if (on) next.set(keyOf(row), row)
      else next.delete(keyOf(row))
      return next
    })
  }

  return (
    <>
      <div class="head">
        <div>
          <h1>Sessions</h1>
          <p class="muted" role="status">{summary(list)}</p>
          <p class="small muted">A bar is the share of the available input: the window without the answer. <FillKey /></p>
        </div>
      </div>
      <Filters tenant={tenant} sort={sort} level={level} text={text} levels={list.levels} />
      {picked.size > 0 && (
        <div class="actions" role="group" aria-label="Selected sessions">
          <strong class="nowrap">{some(picked.size, 'session')} selected</strong>
          <button type="button" class="button" onClick={() => setBulk({ verb: 'compact', rows: [...picked.values()] })}>Compact…</button>
          <button type="button" class="button danger" onClick={() => setBulk({ verb: 'end', rows: [...picked.values()] })}>End…</button>
          <button type="button" class="button plain" onClick={() => setPicked(new Map())}>Clear selection</button>
        </div>
      )}
      {bulk && <BulkDialog bulk={bulk} close={() => { setBulk(undefined); setPicked(new Map()); list.again() }} />}
      {list.error && list.rows.length > 0 && <p class="outcome bad" role="status">{list.error.message} This is the last answer.</p>}
      <div class="card">
        {list.error && !list.rows.length ? (
          <Nothing title={list.error.message}>{list.error.hint}</Nothing>
        ) : list.rows.length === 0 ? (
          list.loading ? <div class="empty" role="status">Loading…</div> : <NoSessions filtered={!!(text || level || tenant !== '*')} />
        ) : (
          <Virtual
            className="sessions"
            items={list.rows}
            rowHeight={narrow ? 78 : 46}
            label="Sessions"
            keyOf={keyOf}
            head={<Head sort={sort} />}
            row={(row) => <Row row={row} picked={picked.has(keyOf(row))} pick={pick} />}
            onEnd={list.more}
          />
        )}
      </div>
    </>
  )
}

function summary(list: Sessions): string {
  if (list.total === undefined) return 'Reading…'
  const shown = list.matched === list.total ? some(list.total, 'session') : `${count(list.matched)} of ${some(list.total, 'session')}`
  const missing = list.missing.length ? ` Without partition ${list.missing.join(', ')}, which no worker serves now.` : ''
  return shown + missing
}

function NoSessions({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <Nothing title="No session matches.">
      <a href={link(['sessions'])}>Show all sessions</a>
    </Nothing>
  ) : (
    <Nothing title="There are no sessions yet.">An agent begins one with its first turn. Replay the examples with <code>bin/publisher replay examples/sessions</code>.</Nothing>
  )
}

interface Filter { tenant: string; sort: string; level: string; text: string }

function Filters({ tenant, sort, level, text, levels: counts }: Filter & { levels: Record<string, number> }) {
  return (
    <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
      <Search label="Search tenant, session or model" text={text} />
      <label class="field">
        <span>Level</span>
        <select class="input" value={level} onChange={(e) => replaceQuery({ level: e.currentTarget.value })}>
          <option value="">all levels</option>
          {levels.map((name) => <option value={name} key={name}>{counts[name] ? `${name} (${count(counts[name])})` : name}</option>)}
        </select>
      </label>
      <label class="field">
        <span>Order</span>
        <select class="input" value={sort} onChange={(e) => replaceQuery({ sort: e.currentTarget.value })}>
          {sorts.map(([name, words]) => <option value={name} key={name}>{words}</option>)}
        </select>
      </label>
      {tenant !== '*' && <button type="button" class="button" onClick={() => replaceQuery({ tenant: '' })}>Tenant {tenant} ×</button>}
    </form>
  )
}

function Head({ sort }: { sort: string }) {
  const cell = (name: string, by: string | undefined, text: string, className = '') => (
    <span role="columnheader" class={`${name} ${className}`} aria-sort={by === sort ? (by === 'name' || by === 'remaining' ? 'ascending' : 'descending') : undefined}>
      {by ? <button type="button" class="sorter" onClick={() => replaceQuery({ sort: by })}>{text}{by === sort && <span aria-hidden="true"> {by === 'name' || by === 'remaining' ? '↑' : '↓'}</span>}</button> : text}
    </span>
  )
  return (
    <div role="row" class="row head-row" aria-rowindex={1}>
      <span role="columnheader" class="s-pick"><span class="visually-hidden">Select</span></span>
      {cell('s-name', 'name', 'Session')}
      {cell('s-fill', 'fill', 'Of available input')}
      {cell('s-tokens', 'input', 'Tokens', 'num')}
      {cell('s-trend', 'growth', 'A turn', 'num')}
      {cell('s-left', 'remaining', 'Turns left', 'num')}
      {cell('s-level', undefined, 'Level')}
      {cell('s-gen', 'generation', 'Gen.', 'num')}
      {cell('s-why', undefined, 'Last compaction')}
      {cell('s-saved', 'saved', 'Saved', 'num')}
      {cell('s-model', undefined, 'Model')}
      {cell('s-last', 'last_turn', 'Last turn', 'num')}
    </div>
  )
}

function Row({ row, picked, pick }: { row: SessionRow; picked: boolean; pick(row: SessionRow, on: boolean): void }) {
  const name = shown(row.name ?? row.session)
  const tokens = row.estimated_input_tokens ?? 0
  const available = row.available_input_tokens ?? 0
  const left = row.turns_left === undefined ? '–' : row.turns_left >= 100 ? '100+' : String(row.turns_left)
  return (
    <>
      <span role="cell" class="s-pick">
        <input type="checkbox" class="check" checked={picked} aria-label={`Select ${name.slice(0, 100)}`} onChange={(e) => pick(row, e.currentTarget.checked)} />
      </span>
      <span role="cell" class="s-name">
        <a class="clip" href={link(['s', row.tenant, row.session])}><bdi>{name}</bdi></a>
        <span class="clip muted small"><bdi>{row.tenant}</bdi></span>
      </span>
      <span role="cell" class="s-fill">
        <Fill tokens={tokens} available={available} threshold={row.trigger_tokens} target={row.target_tokens} />
        <span class="num">{percent(tokens / available)}</span>
      </span>
      <span role="cell" class="s-tokens num">{count(tokens)}</span>
      <span role="cell" class="s-trend num">{row.growth_tokens ? `+${brief(row.growth_tokens)}` : '–'}</span>
      <span role="cell" class="s-left num">{left}</span>
      <span role="cell" class="s-level"><span class={`tag ${levelTag(row.level)}`}>{row.level ?? 'ok'}</span></span>
      <span role="cell" class="s-gen num">{row.generation ?? 0}</span>
      <span role="cell" class="s-why">
        <span class="clip">{reason(row.reason)}</span>
        {(row.waiting || row.prepared) && <span class="clip muted small">{row.waiting ? 'summary under way' : 'summary ready'}</span>}
      </span>
      <span role="cell" class="s-saved num">{row.saved_tokens ? brief(row.saved_tokens) : '–'}</span>
      <span role="cell" class="s-model clip muted" title={row.model}>{row.model ?? '–'}</span>
      <span role="cell" class="s-last num muted">{ago(row.last_turn_ms)}</span>
    </>
  )
}

interface Sessions {
  rows: SessionRow[]
  total: number | undefined
  matched: number | undefined
  levels: Record<string, number>
  missing: number[]
  loading: boolean
  error: Refusal | undefined
  more(): void
  again(): void
}

const first = 100
const most = 500 // a page of the worker

// The rows that were read stay until newer ones come. An event reads the first rows again, since
// those are in view; further pages are read when the user scrolls to them.
function useSessions({ tenant, sort, level, text }: Filter): Sessions {
  const path = useMemo(() => {
    const query = new URLSearchParams({ tenant, sort })
    if (level) query.set('level', level)
    if (text) query.set('text', text)
    return `/v1/sessions?${query}`
  }, [tenant, sort, level, text])
  const [pages, setPages] = useState<{ path: string; rows: SessionRow[]; answer: SessionList }>()
  const [error, setError] = useState<Refusal>()
  const [loading, setLoading] = useState(true)
  const busy = useRef<AbortController | undefined>(undefined)
  const now = useRef(pages)
  now.current = pages?.path === path ? pages : undefined

  const read = useCallback(async (after: string | undefined) => {
    if (busy.current) return
    const own = (busy.current = new AbortController())
    try {
      const have = now.current?.rows ?? []
      const limit = after ? most : Math.min(most, Math.max(first, have.length))
      const answer = await request<SessionList>(`${path}&limit=${limit}${after ? `&after=${encodeURIComponent(after)}` : ''}`, { signal: own.signal })
      if (own.signal.aborted) return
      const rows = answer.sessions ?? []
      const merged = after ? unique([...have, ...rows]) : have.length > limit && answer.after ? unique([...rows, ...have]) : rows
      const keep = !after && merged.length > rows.length ? now.current?.answer.after : answer.after
      setPages({ path, rows: merged, answer: { ...answer, ...(keep ? { after: keep } : {}) } })
      setError(undefined)
    } catch (err) {
      if (own.signal.aborted) return
      if (err instanceof Refusal) setError(err)
      else if (!(err instanceof Away)) throw err
    } finally {
      if (busy.current === own) {
        busy.current = undefined
        setLoading(false)
      }
    }
  }, [path])

  const again = useCallback(() => void read(undefined), [read])
  useEffect(() => {
    const end = () => {
      busy.current?.abort()
      busy.current = undefined
    }
    setLoading(true)
    setError(undefined)
    again()
    let timer: ReturnType<typeof setTimeout> | undefined
    const soon = () => (timer ??= setTimeout(() => { timer = undefined; again() }, 300))
    const stops = [listen(soon), comeback.follow(() => { end(); soon() }), end]
    const interval = setInterval(() => document.hidden || soon(), 5000)
    return () => {
      clearTimeout(timer)
      clearInterval(interval)
      for (const stop of stops) stop()
    }
  }, [again])

  const own = pages?.path === path ? pages : undefined
  const after = own?.answer.after
  const more = useCallback(() => { if (after) void read(after) }, [read, own]) // another one after each answer: a read under way takes no other
  return {
    rows: own?.rows ?? [], total: own && (own.answer.total ?? 0), matched: own && (own.answer.matched ?? 0), levels: own?.answer.levels ?? {}, missing: own?.answer.missing ?? [],
    loading, error, more, again,
  }
}

function unique(rows: SessionRow[]): SessionRow[] {
  const seen = new Map<string, SessionRow>()
  for (const row of rows) if (!seen.has(keyOf(row))) seen.set(keyOf(row), row)
  return [...seen.values()]
}
