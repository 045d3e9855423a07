// Actions of an operator on sessions. Each is confirmed, and states its effect before.
import { useEffect, useState } from 'preact/hooks'
import { Refusal, request } from '../api'
import { count, some } from '../format'
import { nameOf, visible } from '../names'
import type { Context, Decided, Preview, SessionRow } from '../types'
import { stage } from '../words'
import { Confirm } from './dialog'

export const sessionPath = (tenant: string, session: string): string => `/v1/sessions/${encodeURIComponent(tenant)}/${encodeURIComponent(session)}`

interface Of { tenant: string; session: string; close(): void }

// The key makes a repeated request the same event.
function act(path: string, body: object): Promise<Decided> {
  return request<Decided>(`${path}?wait_ms=5000`, { method: 'POST', body, headers: { 'Idempotency-Key': crypto.randomUUID() } })
}

function outcome(answer: Decided): string {
  if (answer.compaction) {
    const { tokens_before, tokens_after, generation, compacted } = answer.compaction
    return compacted ? `Done: generation ${generation}, ${count(tokens_before)} → ${count(tokens_after)} tokens.` : `Nothing changed: ${answer.compaction.code ?? 'nothing to do'}.`
  }
  if (answer.accepted === false) throw new Refusal(422, answer.code ?? '', answer.message ?? answer.code ?? 'The event was refused.', answer.hint)
  return answer.decided ? 'Done.' : 'The request is stored. The session changes once it is decided; a summary may be written first.'
}

export function CompactDialog({ tenant, session, close }: Of) {
  const path = sessionPath(tenant, session)
  const [focus, setFocus] = useState('')
  const [preview, setPreview] = useState<Preview | string>()
  useEffect(() => {
    let current = true
    const timer = setTimeout(async () => {
      try {
        const answer = await request<Preview>(`${path}/preview`, { method: 'POST', body: focus ? { focus } : {} })
        if (current) setPreview(answer)
      } catch (err) {
        if (current) setPreview(err instanceof Refusal && err.status === 404 ? 'This worker shows no preview.' : `There is no preview now: ${err instanceof Error ? err.message : err}`)
      }
    }, 300)
    return () => { current = false; clearTimeout(timer) }
  }, [path, focus])
  return (
    <Confirm title="Compact this session" confirm="Compact" close={close} act={async () => outcome(await act(`${path}/compact`, focus ? { focus } : {}))}>
      <p>The history becomes shorter at the next turn boundary, whatever its level. The agent receives the new history. A rewind brings the present view back.</p>
      <label class="field">
        <span>Focus: what a summary keeps in mind (optional)</span>
        <textarea class="input" rows={2} maxLength={4096} value={focus} placeholder="the failing test" onInput={(e) => setFocus(e.currentTarget.value)} />
      </label>
      <div class="outcome" role="status"><PreviewText of={preview} /></div>
    </Confirm>
  )
}

function PreviewText({ of }: { of: Preview | string | undefined }) {
  if (of === undefined) return <>Working out what would happen…</>
  if (typeof of === 'string') return <>{of}</>
  if (of.summary) {
    const model = of.summary.model ? `the model ${of.summary.model}` : 'the summarizer'
    const range = of.summary.from && of.summary.to ? ` of turns ${of.summary.from.turn} to ${of.summary.to.turn}` : ''
    return <>Preview: {model} writes a summary{range} first. Its length decides how many tokens are left.</>
  }
  if (of.compaction?.compacted) {
    const { tokens_before, tokens_after, stages_used } = of.compaction
    return (
      <>
        Preview: {count(tokens_before)} → {count(tokens_after)} tokens{of.edits ? `, ${some(of.edits, 'edit')}` : ''}. {stages_used?.map((name) => `${name} ${stage(name)}`).join('; ')}
      </>
    )
  }
  return <>Preview: nothing would change. {of.message ?? of.code ?? of.compaction?.code}</>
}

export function RewindDialog({ tenant, session, close, generation: present }: Of & { generation: number }) {
  const [generation] = useState(present) // the one that it named when it opened, whatever comes meanwhile
  const view = generation === 0 ? 'the history as published' : `the view of generation ${generation}`
  return (
    <Confirm title={generation === 0 ? 'Undo every compaction' : `Rewind to generation ${generation}`} confirm="Rewind" close={close}
      act={async () => outcome(await act(`${sessionPath(tenant, session)}/rewind`, { generation }))}>
      <p>The session gets a new generation with {view} and every turn taken since. The agent receives it. A summary under way is dropped.</p>
      <p class="muted">A history at its threshold is compacted again after it has grown by 5 %.</p>
    </Confirm>
  )
}

export function EndDialog({ tenant, session, close }: Of) {
  return (
    <Confirm title="End this session" confirm="End session" danger close={close} act={async () => outcome(await act(`${sessionPath(tenant, session)}/end`, {}))}>
      <p>The session <bdi>{nameOf(session)}</bdi> of <bdi>{tenant}</bdi> ends with its branches, and leaves this list. Its turns stay in the log. An agent that goes on begins a new session with turn 1.</p>
    </Confirm>
  )
}

export interface Bulk { verb: 'compact' | 'end'; rows: SessionRow[] }

export function BulkDialog({ bulk, close }: { bulk: Bulk; close(): void }) {
  const { verb, rows } = bulk
  const [done, setDone] = useState(0)
  const run = async () => {
    const waiting = [...rows]
    const refused: string[] = []
    const one = async () => {
      for (let row = waiting.pop(); row; row = waiting.pop()) {
        try {
          outcome(await act(`${sessionPath(row.tenant, row.session)}/${verb}`, {}))
        } catch (err) {
          refused.push(`${visible(row.name ?? row.session)}: ${err instanceof Error ? err.message : err}`)
        }
        setDone((n) => n + 1)
      }
    }
    await Promise.all([one(), one(), one(), one()])
    if (refused.length) throw new Error(`${some(rows.length - refused.length, 'session')} done, ${refused.length} refused. ${refused.slice(0, 3).join(' · ')}`)
    return `${some(rows.length, 'session')} done.`
  }
  return (
    <Confirm title={verb === 'end' ? `End ${some(rows.length, 'session')}` : `Compact ${some(rows.length, 'session')}`} confirm={verb === 'end' ? 'End sessions' : 'Compact'} danger={verb === 'end'} close={close} act={run}>
      <p>
        {verb === 'end'
          ? 'Each of these sessions ends with its branches. Their turns stay in the log; an agent that goes on begins a new session.'
          : 'The history of each of these sessions becomes shorter, whatever its level. Their agents receive the new histories.'}
      </p>
      <p class="muted clip">{rows.slice(0, 8).map((row) => visible(row.name ?? row.session)).join(', ')}{rows.length > 8 ? ', …' : ''}</p>
      {done > 0 && <progress max={rows.length} value={done} aria-label="Progress" />}
    </Confirm>
  )
}

// Pages of one history have the same turns and generation; else it changed meanwhile.
const mark = ({ generation, through, pages }: Context): string => JSON.stringify([generation, through?.turn, through?.seq, pages])

/** Reads all pages of a history; undefined where it changed meanwhile. */
async function pagesOf(path: string): Promise<Context[] | undefined> {
  const pages = [await request<Context>(`${path}&page=1`)]
  while (pages.length < (pages[0]!.pages ?? 1)) {
    const next = await request<Context>(`${path}&page=${pages.length + 1}`).catch((err) => {
      if (err instanceof Refusal && err.code === 'out_of_range') return undefined
      throw err
    })
    if (!next || mark(next) !== mark(pages[0]!)) return undefined
    pages.push(next)
  }
  return pages
}

const mostTries = 5

/** Saves the history, one message a line: the present view, or generation 0 as published. */
export async function exportHistory(tenant: string, session: string, generation?: number): Promise<void> {
  const path = `${sessionPath(tenant, session)}/context?${generation === undefined ? '' : `generation=${generation}`}`
  let pages: Context[] | undefined
  for (let tries = 0; !pages && tries < mostTries; tries++) pages = await pagesOf(path)
  if (!pages) throw new Error('The session changes faster than its history can be read. Try again when it is idle.')
  const system = pages.find((page) => page.system !== undefined)?.system // on any one of them
  const lines = pages.flatMap((page) => page.messages ?? []).map((message) => JSON.stringify(message))
  if (system !== undefined) lines.unshift(JSON.stringify({ role: 'system', content: system }))
  const url = URL.createObjectURL(new Blob([`${lines.join('\n')}\n`], { type: 'application/jsonl' }))
  const a = document.createElement('a')
  a.href = url
  a.download = `${session.replace(/[^\w.-]+/g, '_').slice(0, 80)}${generation === 0 ? '-as-published' : ''}.jsonl`
  a.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

