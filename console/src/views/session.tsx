// A session: its state, and the tabs over time, context and what if.
import { useEffect, useState } from 'preact/hooks'
import { count, percent, some } from '../format'
import { netParts, netText, spentText } from '../money'
import { nameOf, visible } from '../names'
import { CompactDialog, EndDialog, exportHistory, RewindDialog, sessionPath } from '../parts/actions'
import { Fill, FillKey } from '../parts/fill'
import { Loaded, Nothing } from '../parts/state'
import { useResource } from '../resource'
import { link } from '../route'
import type { LiveEvent } from '../live'
import type { Signal, Stats, Timeline } from '../types'
import { levelTag } from '../words'
import { TimeTab } from './time'
import { WhatIfTab } from './whatif'
import { XrayTab } from './xray'

const tabs: [string, string][] = [['time', 'Over time'], ['context', 'Context'], ['what-if', 'What if']]

interface Props { tenant: string; session: string; tab: string }

export function SessionView({ tenant, session, tab }: Props) {
  const base = sessionPath(tenant, session)
  const concerns = ({ data }: LiveEvent) => {
    const { tenant: t, session: s } = data as Signal
    return t === tenant && s === session
  }
  const stats = useResource<Stats>(`${base}/stats`, { concerns, every: 3000 })
  const timeline = useResource<Timeline>(`${base}/timeline`, { concerns })
  const [action, setAction] = useState<Action>()
  const close = (own: Action) => () => setAction((now) => (now === own ? undefined : now)) // the event of a closed dialog comes late
  const through = stats.data?.through?.seq
  useEffect(() => {
    if (through !== undefined) timeline.again() // turns without an outcome
  }, [through])

  return (
    <>
      <nav class="crumbs small" aria-label="Path">
        <a href={link(['sessions'])}>Sessions</a> <span aria-hidden="true">/</span> <a href={link(['sessions'], { tenant })}><bdi>{tenant}</bdi></a>
      </nav>
      <Loaded of={stats}>
        {(data) => data.known === false ? (
          <>
            <h1><bdi>{nameOf(session).slice(0, 256)}</bdi></h1>
            <div class="card"><Nothing title="There is no such session.">It has no turn, has ended, or was erased. <a href={link(['sessions'])}>Show all sessions</a></Nothing></div>
          </>
        ) : (
          <>
            <Head tenant={tenant} session={session} stats={data} timeline={timeline.data} open={setAction} />
            <nav class="tabs" aria-label="Session">
              {tabs.map(([name, text]) => <a href={link(['s', tenant, session, name])} aria-current={tab === name ? 'page' : undefined} key={name}>{text}</a>)}
            </nav>
            {tab === 'context' ? <XrayTab base={base} concerns={concerns} stats={data} />
              : tab === 'what-if' ? <WhatIfTab base={base} />
              : <TimeTab base={base} tenant={tenant} session={session} concerns={concerns} timeline={timeline} />}
          </>
        )}
      </Loaded>
      {/* Outside of what is loaded: a dialog states its outcome of a session that has ended, too. */}
      {action === 'compact' && <CompactDialog tenant={tenant} session={session} close={close('compact')} />}
      {action === 'rewind' && <RewindDialog tenant={tenant} session={session} generation={before(timeline.data)} close={close('rewind')} />}
      {action === 'end' && <EndDialog tenant={tenant} session={session} close={close('end')} />}
    </>
  )
}

type Action = 'compact' | 'rewind' | 'end' | undefined

function Head({ tenant, session, stats, timeline, open }: { tenant: string; session: string; stats: Stats; timeline: Timeline | undefined; open(action: Action): void }) {
  const [problem, setProblem] = useState('')
  const { budget, cost } = stats
  const save = async (generation?: number) => {
    setProblem('')
    try {
      await exportHistory(tenant, session, generation)
    } catch (err) {
      setProblem(err instanceof Error ? err.message : String(err))
    }
  }
  const saved = timeline?.generations?.reduce((sum, g) => sum + (g.saved_tokens ?? 0), 0)
  const rewinds = timeline?.generations?.filter((g) => g.reason === 'rewind').length ?? 0
  const model = timeline?.model ? [timeline.provider, timeline.model].filter(Boolean).join('/') : undefined
  return (
    <>
      <div class="head">
        <div>
          <h1><bdi>{nameOf(session).slice(0, 256)}</bdi></h1>
          <p class="muted small">
            {model && <><bdi>{visible(model)}</bdi> · </>}window {count(budget?.context_window)} tokens · level <span class={`tag ${levelTag(budget?.level)}`}>{budget?.level ?? 'ok'}</span>
            {stats.waiting && <> <span class="tag info">summary under way</span></>}
            {stats.prepared && <> <span class="tag good">summary ready</span></>}
          </p>
        </div>
        <div class="actions" role="group" aria-label="Actions">
          <button type="button" class="button" onClick={() => open('compact')}>Compact…</button>
          <button type="button" class="button" disabled={!stats.generation || !timeline} onClick={() => open('rewind')}>Undo last compaction…</button>
          <button type="button" class="button" onClick={() => save()}>Export</button>
          <button type="button" class="button" onClick={() => save(0)}>Export as published</button>
          <button type="button" class="button danger" onClick={() => open('end')}>End…</button>
        </div>
      </div>
      {problem && <p class="outcome bad" role="alert">{problem}</p>}
      <dl class="facts">
        <div class="fact-wide">
          <dt>Input of the next call</dt>
          <dd>{count(budget?.estimated_input_tokens)} <small>of {count(budget?.available_input_tokens)} available, {percent((budget?.usage_ppm ?? 0) / 1e6)}</small>
            {budget && <Fill tokens={budget.estimated_input_tokens} available={budget.available_input_tokens} threshold={budget.trigger_tokens} target={budget.target_tokens} />}
            {budget && <FillKey threshold={budget.trigger_tokens} target={budget.target_tokens} />}
          </dd>
        </div>
        <div><dt>Turns</dt><dd>{count(stats.turns ?? 0)} <small>{some(stats.messages ?? 0, 'message')}</small></dd></div>
        <div><dt>Compactions</dt><dd>{count((stats.generation ?? 0) - rewinds)} {rewinds > 0 && <small>and {some(rewinds, 'rewind')}</small>}</dd></div>
        <div><dt>Tokens saved</dt><dd>{count(saved)}</dd></div>
        <div><dt>Spent</dt><dd>{spentText(cost, stats.turns)} <small>at list prices</small></dd></div>
        <div><dt>Net saving, expected</dt><dd>{netText(cost)} <small>{netParts(cost)}</small></dd></div>
        <div><dt>Read or run again</dt><dd>{count((stats.rereads ?? 0) + (stats.reruns ?? 0))} <small>after a compaction</small></dd></div>
      </dl>
    </>
  )
}

// The generation whose view was in force before the newest.
function before(timeline: Timeline | undefined): number {
  const newest = timeline?.generations?.at(-1)
  return newest?.from ?? Math.max(0, (newest?.generation ?? timeline?.generation ?? 1) - 1)
}
