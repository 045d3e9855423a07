// A session over time: its tokens turn by turn, its generations, and each before and after.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { Away, Refusal, request } from '../api'
import { clock, count, some } from '../format'
import type { LiveEvent } from '../live'
import { RewindDialog } from '../parts/actions'
import { Changes, Text } from '../parts/changes'
import { Plot, type Level } from '../parts/plot'
import { Scroll } from '../parts/scroll'
import { Loaded, Nothing } from '../parts/state'
import { useResource, type Resource } from '../resource'
import { replaceQuery, useRoute } from '../route'
import type { Changes as ChangesAnswer, Change, Compaction, History, RecordLine, Timeline } from '../types'
import { reason, stage, why } from '../words'

interface Props { base: string; tenant: string; session: string; concerns(event: LiveEvent): boolean; timeline: Resource<Timeline> }

export function TimeTab({ base, tenant, session, concerns, timeline }: Props) {
  const { query } = useRoute()
  const history = useResource<History>(`${base}/history?limit=100`, { concerns })
  const wanted = Number(query.get('generation') ?? NaN)
  const generations = useMemo(() => joined(timeline.data, history.data), [timeline.data, history.data])
  const found = generations.find((g) => g.generation === wanted)
  const chosen = found ?? generations[0]
  const choose = (generation: number) => replaceQuery({ generation })

  return (
    <>
      <section class="card" aria-label="Tokens turn by turn">
        <Loaded of={timeline}>{(data) => <TokensPlot timeline={data} generations={generations} chosen={chosen?.generation} choose={choose} />}</Loaded>
      </section>
      {query.has('generation') && !found && timeline.data && (
        <p class="outcome" role="status">This session has no generation {query.get('generation')!.slice(0, 20)}.{chosen && ` The newest, ${chosen.generation}, is shown.`}</p>
      )}
      {generations.length === 0 ? (
        <div class="card"><Nothing title="Not compacted yet.">The first compaction begins at the threshold.</Nothing></div>
      ) : (
        <div class="columns list">
          <section class="card" aria-label="Compactions">
            <header><h2>{generations.some(rewound) ? 'Compactions and rewinds' : 'Compactions'}</h2><span class="small muted">newest first</span></header>
            <Generations all={generations} chosen={chosen?.generation} choose={choose} />
          </section>
          {chosen && <Generation key={chosen.generation} base={base} tenant={tenant} session={session} of={chosen} newest={generations[0]!.generation} />}
        </div>
      )}
    </>
  )
}

/** A generation of the timeline, with its entry of the history where the stream still has it. */
export interface Gen { reason: string | undefined; generation: number; turn: number; from: number; before: number | undefined; after: number | undefined; saved: number | undefined; entry: Compaction | undefined }

function joined(timeline: Timeline | undefined, history: History | undefined): Gen[] {
  const entries = new Map((history?.entries ?? []).filter((e) => e.compacted).map((e) => [e.generation, e]))
  return (timeline?.generations ?? []).map((g) => {
    const entry = entries.get(g.generation)
    return { reason: entry?.reason ?? g.reason, generation: g.generation, turn: g.turn, from: g.from ?? 0, before: g.tokens_before, after: g.tokens_after, saved: g.saved_tokens ?? (entry && entry.tokens_before - entry.tokens_after), entry }
  }).reverse()
}

const rewound = (g: Gen): boolean => g.reason === 'rewind'

function Generations({ all, chosen, choose }: { all: Gen[]; chosen: number | undefined; choose(generation: number): void }) {
  return (
    <ol class="gens">
      {all.map((g) => (
        <li key={g.generation}>
          <button type="button" aria-current={g.generation === chosen ? 'true' : undefined} onClick={() => choose(g.generation)}>
            <span class="line"><b>Generation {g.generation}</b><span class="small muted nowrap">{clock(g.entry?.time_ms)}</span></span>
            <span class="line small"><span class="muted">turn {g.turn}, {reason(g.reason)}</span>{g.saved !== undefined && <span class="nowrap">{g.saved < 0 ? '+' : '−'}{count(Math.abs(g.saved))}</span>}</span>
          </button>
        </li>
      ))}
    </ol>
  )
}

interface PlotProps { timeline: Timeline; generations: Gen[]; chosen: number | undefined; choose(generation: number): void }

function TokensPlot({ timeline, generations, chosen, choose }: PlotProps) {
  const [at, setAt] = useState<number>()
  const points = useMemo(() => pointsOf(timeline), [timeline])
  const plotted = useMemo(() => {
    const ceiling = 1.5 * Math.max(timeline.context_window ?? 0, ...points.map((p) => p.input))
    return {
      x: points.map((p) => p.turn),
      input: points.map((p) => p.input),
      published: points.map((p) => (p.published <= ceiling ? p.published : null)),
    }
  }, [points])
  const levels = useMemo((): Level[] => {
    const all: [string, number | undefined, string, number[]?][] = [
      ['window', timeline.context_window, '--muted'], ['available', timeline.available_input_tokens, '--bad'],
      ['threshold', timeline.trigger_tokens, '--warn', [6, 4]], ['target', timeline.target_tokens, '--good', [2, 4]],
    ]
    return all.flatMap(([label, value, colour, dash]) => (value ? [{ label, value, colour, ...(dash ? { dash } : {}) }] : []))
  }, [timeline])
  const oldest = useMemo(() => [...generations].reverse(), [generations])
  const point = at === undefined ? undefined : points[at]
  const last = points.at(-1)
  if (!last) return <Nothing title="No turn is in the log any more." />
  return (
    <>
      <header>
        <h2>Tokens of the next call, turn by turn</h2>
        <span class="small muted plot-key"><span><i />input</span><span><i class="dash" />without compactd</span><span><i class="mark" />compaction</span></span>
      </header>
      <div class="body">
        <Plot
          label={`Tokens of ${some(last.turn, 'turn')}: now ${count(last.input)}, without compactd ${count(last.published)}; ${some(generations.filter((g) => !rewound(g)).length, 'compaction')}`}
          height={260}
          x={plotted.x}
          lines={[
            { line: { label: 'without', colour: '--muted', dash: [5, 4] }, values: plotted.published },
            { line: { label: 'sent', colour: '--accent', fill: true }, values: plotted.input },
          ]}
          levels={levels}
          marks={oldest.map((g) => ({ x: g.turn, from: g.before, to: g.after, chosen: g.generation === chosen }))}
          onHover={setAt}
          onMark={(i) => choose(oldest[i]!.generation)}
        />
        <p class="readout">
          {point ? `Turn ${point.turn}: ${count(point.input)} tokens${point.generation ? ` after the compaction to generation ${point.generation}` : ''}, ${count(point.published)} without compactd; the turn added ${count(point.added)}.`
            : 'Point at a turn for its figures; click near a vertical line to see that compaction.'}
        </p>
      </div>
    </>
  )
}

interface Point { turn: number; input: number; published: number; added: number; generation?: number }

// A turn has a point before the compactions that it caused, and one behind each of them.
function pointsOf({ turns = [], generations = [] }: Timeline): Point[] {
  const byTurn = new Map<number, typeof generations>()
  for (const g of generations) byTurn.set(g.turn, [...(byTurn.get(g.turn) ?? []), g])
  return turns.flatMap((t) => {
    const point: Point = { turn: t.turn, input: t.input_tokens ?? 0, published: t.published_tokens ?? 0, added: t.added_tokens ?? 0 }
    return [point, ...(byTurn.get(t.turn) ?? []).map((g) => ({ ...point, input: g.tokens_after ?? point.input, generation: g.generation }))]
  })
}

function Generation({ base, tenant, session, of, newest }: { base: string; tenant: string; session: string; of: Gen; newest: number }) {
  const [rewind, setRewind] = useState(false)
  const { rows, answer, error, loading, more } = useChanges(`${base}/changes?generation=${of.generation}`)
  const [turns, setTurns] = useState<[number, number]>()
  const { entry } = of
  return (
    <section class="card" aria-label={`Generation ${of.generation}`}>
      <header>
        <h2>Generation {of.generation}</h2>
        <span class="muted">turn {of.turn}{entry && `, ${clock(entry.time_ms)}`}</span>
        <span class="small actions">
          {of.generation !== newest && <button type="button" class="button" onClick={() => setRewind(true)}>Rewind to this view…</button>}
        </span>
      </header>
      {rewind && <RewindDialog tenant={tenant} session={session} generation={of.generation} close={() => setRewind(false)} />}
      <div class="body stack">
        <p>{sentence(of, answer)}</p>
        {entry?.stages && entry.stages.length > 0 && <Stages entry={entry} />}
        {entry && <Cause entry={entry} />}
        {answer && entry && <Basis of={answer} entry={entry} />}
        {answer?.summary && <Summary of={answer.summary} show={setTurns} />}
      </div>
      {error ? <Nothing title={error.message}>{error.hint}</Nothing> : <Changes base={base} rows={rows} turns={turns} />}
      {loading && <div class="empty" role="status">Loading…</div>}
      {more && <div class="body"><button type="button" class="button" onClick={more}>Show more messages</button></div>}
    </section>
  )
}

function sentence({ entry, from, reason: named }: Gen, answer: ChangesAnswer | undefined): string {
  const before = entry?.tokens_before ?? answer?.tokens_before
  const after = entry?.tokens_after ?? answer?.tokens_after
  const what = entry?.rewound_to !== undefined ? ` It went back to generation ${entry.rewound_to}.` : ''
  const sizes = before !== undefined && after !== undefined ? ` ${count(before)} → ${count(after)} tokens${entry ? `, of ${count(entry.available_input_tokens)} available` : ''}.` : ''
  const grew = named !== 'rewind' && before !== undefined && after !== undefined && after > before ? ' The history is larger now: the new text is longer than what it replaced.' : ''
  const base = from ? ` It changed the view of generation ${from}.` : ''
  return `${why(named)}${what}${sizes}${grew}${entry ? '' : ' The entry has left the stream of outcomes.'}${base}`.trim()
}

function Stages({ entry }: { entry: Compaction }) {
  return (
    <Scroll label="Stages">
      <table>
        <thead><tr><th scope="col">Stage</th><th scope="col">Effect</th><th scope="col" class="num">Edits</th><th scope="col" class="num">Before</th><th scope="col" class="num">After</th><th scope="col" class="num">Saved</th></tr></thead>
        <tbody>
          {entry.stages!.map((s) => (
            <tr key={s.name}>
              <td><b>{s.name}</b></td><td class="muted">{s.edits || s.tokens_after !== s.tokens_before ? stage(s.name) : 'found nothing to change'}</td>
              <td class="num">{count(s.edits)}</td><td class="num">{count(s.tokens_before)}</td><td class="num">{count(s.tokens_after)}</td><td class="num">{count(s.tokens_before - s.tokens_after)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

function Cause({ entry }: { entry: Compaction }) {
  return (
    <p class="small muted">
      Caused by event {entry.caused_by.seq}, decided under config <span class="mono">{entry.config}</span>
      {entry.request && `, requested by event ${entry.request.seq}`}
      {entry.trace && <>, trace <span class="mono">{entry.trace}</span></>}.
    </p>
  )
}

// Messages are estimated one by one; the input also has what is beside them.
function Basis({ of, entry }: { of: ChangesAnswer; entry: Compaction }) {
  return (
    <p class="small muted">
      The messages below have {count(of.tokens_before)} → {count(of.tokens_after)} tokens by estimate. The input of the call has {count(entry.tokens_before)} → {count(entry.tokens_after)}: with
      system prompt and tools, and corrected by what the provider counted.
    </p>
  )
}

function Summary({ of, show }: { of: NonNullable<ChangesAnswer['summary']>; show(turns: [number, number]): void }) {
  return (
    <div class="stack">
      <h3>Summary{of.turns && ` of turns ${of.turns[0]} to ${of.turns[1]}`}{of.model && `, by ${of.model === 'embedded' ? 'the embedded summarizer' : of.model}`}</h3>
      {of.text && <div class="msg new"><Text text={of.text} /></div>}
      {of.record && of.record.length > 0 && (
        <>
          <h3>Record of facts, taken from these turns</h3>
          <ul class="record">
            {of.record.map((line, i) => (
              <li key={i}>
                <span class="tag">{line.kind.replaceAll('_', ' ')}</span> <bdi>{line.text}</bdi> <Source line={line} show={show} />
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  )
}

function Source({ line, show }: { line: RecordLine; show(turns: [number, number]): void }) {
  if (!line.turns) return null
  const [from, to] = line.turns
  return <button type="button" class="button plain small" onClick={() => show([from, to])}>{from === to ? `turn ${from}` : `turns ${from} to ${to}`}</button>
}

interface ChangePages { rows: Change[]; answer: ChangesAnswer | undefined; error: Refusal | undefined; loading: boolean; more: (() => void) | undefined }

// A generation never changes, so its pages are read once.
function useChanges(path: string): ChangePages {
  const [state, set] = useState<{ rows: Change[]; answer?: ChangesAnswer; error?: Refusal; loading: boolean }>({ rows: [], loading: true })
  const read = async (page: number, have: Change[]) => {
    set((s) => ({ ...s, loading: true }))
    try {
      const answer = await request<ChangesAnswer>(`${path}&page=${page}`)
      set({ rows: [...have, ...(answer.rows ?? [])], answer: { ...answer }, loading: false })
    } catch (err) {
      if (err instanceof Refusal) set((s) => ({ ...s, error: err, loading: false }))
      else if (!(err instanceof Away)) throw err
      else setTimeout(() => void read(page, have), 2000)
    }
  }
  useEffect(() => void read(1, []), [path])
  const { answer } = state
  const next = answer && (answer.page ?? 1) < (answer.pages ?? 1) ? (answer.page ?? 1) + 1 : undefined
  return { rows: state.rows, answer, error: state.error, loading: state.loading, more: next && !state.loading ? () => void read(next, state.rows) : undefined }
}
