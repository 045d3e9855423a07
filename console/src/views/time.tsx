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

interface Props { base: string; tenant: string; session: string; concerns(event: LiveEvent): boolean; timeline: Resource<Timeline>; now: number | undefined }

export function TimeTab({ base, tenant, session, concerns, timeline, now }: Props) {
  const { query } = useRoute()
  const history = useResource<History>(`${base}/history?limit=100`, { concerns })
  const wanted = Number(query.get('generation') ?? NaN)
  const generations = useMemo(() => joined(timeline.data, history.data), [timeline.data, history.data])
  const chosen = generations.find((g) => g.generation === wanted) ?? generations[0]
  const choose = (generation: number) => replaceQuery({ generation })

  return (
    <>
      <section class="card" aria-label="Tokens turn by turn">
        <Loaded of={timeline}>{(data) => <TokensPlot timeline={data} generations={generations} now={now} chosen={chosen?.generation} choose={choose} />}</Loaded>
      </section>
      {generations.length === 0 ? (
        <div class="card"><Nothing title="Not compacted yet.">The first compaction begins at the trigger.</Nothing></div>
      ) : (
        <div class="columns list">
          <section class="card" aria-label="Compactions">
            <header><h2>Compactions</h2><span class="small muted">newest first</span></header>
            <Generations all={generations} chosen={chosen?.generation} choose={choose} />
          </section>
          {chosen && <Generation key={chosen.generation} base={base} tenant={tenant} session={session} of={chosen} newest={generations[0]!.generation} />}
        </div>
      )}
    </>
  )
}

/** A generation of the timeline, with its entry of the history where the stream still has it. */
export interface Gen { generation: number; turn: number; from: number; saved: number | undefined; entry: Compaction | undefined }

function joined(timeline: Timeline | undefined, history: History | undefined): Gen[] {
  const entries = new Map((history?.entries ?? []).filter((e) => e.compacted).map((e) => [e.generation, e]))
  return (timeline?.generations ?? []).map((g) => {
    const entry = entries.get(g.generation)
    return { generation: g.generation, turn: g.turn, from: g.from ?? 0, saved: g.saved_tokens ?? (entry && entry.tokens_before - entry.tokens_after), entry }
  }).reverse()
}

function Generations({ all, chosen, choose }: { all: Gen[]; chosen: number | undefined; choose(generation: number): void }) {
  return (
    <ol class="gens">
      {all.map((g) => (
        <li key={g.generation}>
          <button type="button" aria-current={g.generation === chosen ? 'true' : undefined} onClick={() => choose(g.generation)}>
            <span class="line"><b>Generation {g.generation}</b><span class="small muted nowrap">{clock(g.entry?.time_ms)}</span></span>
            <span class="line small"><span class="muted">turn {g.turn}, {reason(g.entry?.reason)}</span>{g.saved !== undefined && <span class="nowrap">{g.saved < 0 ? '+' : '−'}{count(Math.abs(g.saved))}</span>}</span>
          </button>
        </li>
      ))}
    </ol>
  )
}

interface PlotProps { timeline: Timeline; generations: Gen[]; now: number | undefined; chosen: number | undefined; choose(generation: number): void }

function TokensPlot({ timeline, generations, now, chosen, choose }: PlotProps) {
  const [at, setAt] = useState<number>()
  const turns = useMemo(() => corrected(timeline.turns ?? [], generations, now), [timeline, generations, now])
  const plotted = useMemo(() => {
    const x = turns.map((t) => t.turn)
    const ceiling = 1.5 * Math.max(timeline.context_window ?? 0, ...turns.map((t) => t.input_tokens ?? 0))
    return {
      x,
      input: turns.map((t) => t.input_tokens ?? 0),
      published: turns.map((t) => ((t.published_tokens ?? 0) <= ceiling ? (t.published_tokens ?? 0) : null)),
    }
  }, [turns])
  const levels = useMemo((): Level[] => {
    const all: [string, number | undefined, string, number[]?][] = [
      ['window', timeline.context_window, '--muted'], ['available', timeline.available_input_tokens, '--bad'],
      ['trigger', timeline.trigger_tokens, '--warn', [6, 4]], ['target', timeline.target_tokens, '--good', [2, 4]],
    ]
    return all.flatMap(([label, value, colour, dash]) => (value ? [{ label, value, colour, ...(dash ? { dash } : {}) }] : []))
  }, [timeline])
  const oldest = useMemo(() => [...generations].reverse(), [generations])
  const turn = at === undefined ? undefined : turns[at]
  if (!turns.length) return <Nothing title="No turn is in the log any more." />
  return (
    <>
      <header>
        <h2>Tokens of the next call, turn by turn</h2>
        <span class="small muted plot-key"><span><i />sent</span><span><i class="dash" />without compactd</span></span>
      </header>
      <div class="body">
        <Plot
          label={`Tokens of ${some(turns.length, 'turn')}: now ${count(turns.at(-1)?.input_tokens)}, without compactd ${count(turns.at(-1)?.published_tokens)}; ${some(generations.length, 'compaction')}`}
          height={260}
          x={plotted.x}
          lines={[
            { line: { label: 'without', colour: '--muted', dash: [5, 4] }, values: plotted.published },
            { line: { label: 'sent', colour: '--accent', fill: true }, values: plotted.input },
          ]}
          levels={levels}
          marks={oldest.map((g) => ({ x: g.turn, from: g.entry?.tokens_before, to: g.entry?.tokens_after, chosen: g.generation === chosen }))}
          onHover={setAt}
          onMark={(i) => choose(oldest[i]!.generation)}
        />
        <p class="readout">
          {turn ? `Turn ${turn.turn}, ${clock(turn.time_ms)}: ${count(turn.input_tokens)} tokens, ${count(turn.published_tokens)} without compactd; the turn added ${count(turn.added_tokens)}.`
            : 'Vertical lines are compactions. Point at a turn for its figures; click near a line to see that compaction.'}
        </p>
      </div>
    </>
  )
}

type Turn = NonNullable<Timeline['turns']>[number]

// The timeline has plain estimates. The counts of providers correct them, and are known where the
// session was compacted, and now: the correction of a turn is between those of its neighbours.
function corrected(turns: Turn[], generations: Gen[], now: number | undefined): Turn[] {
  const byTurn = new Map(turns.map((t) => [t.turn, t]))
  const known = new Map<number, number>()
  for (const { turn, entry } of [...generations].reverse()) {
    const plain = byTurn.get(turn)?.input_tokens
    if (entry && plain) known.set(turn, entry.tokens_after / plain)
  }
  const last = turns.at(-1)
  if (now && last?.input_tokens) known.set(last.turn, now / last.input_tokens)
  const first = generations.at(-1)
  const published = first && byTurn.get(first.turn)?.published_tokens
  const places = [...known].sort(([a], [b]) => a - b)
  if (first?.entry && published && first.turn > 1) places.unshift([first.turn - 1, first.entry.tokens_before / published])
  if (!places.length) return turns
  let i = 0
  return turns.map((t) => {
    while (i < places.length - 1 && places[i + 1]![0] <= t.turn) i++
    const [from, a] = places[i]!
    const [to, b] = places[Math.min(i + 1, places.length - 1)]!
    const ratio = t.turn <= from || to === from ? a : a + ((b - a) * (t.turn - from)) / (to - from)
    return { ...t, input_tokens: Math.round((t.input_tokens ?? 0) * ratio), published_tokens: Math.round((t.published_tokens ?? 0) * ratio), added_tokens: Math.round((t.added_tokens ?? 0) * ratio) }
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
        {answer?.summary && <Summary of={answer.summary} show={setTurns} />}
      </div>
      {error ? <Nothing title={error.message}>{error.hint}</Nothing> : <Changes base={base} rows={rows} turns={turns} />}
      {loading && <div class="empty" role="status">Loading…</div>}
      {more && <div class="body"><button type="button" class="button" onClick={more}>Show more messages</button></div>}
    </section>
  )
}

function sentence({ entry, from }: Gen, answer: ChangesAnswer | undefined): string {
  const before = entry?.tokens_before ?? answer?.tokens_before
  const after = entry?.tokens_after ?? answer?.tokens_after
  const what = entry?.rewound_to !== undefined ? ` It went back to generation ${entry.rewound_to}.` : ''
  const sizes = before !== undefined && after !== undefined ? ` ${count(before)} → ${count(after)} tokens${entry ? `, of ${count(entry.available_input_tokens)} available` : ''}.` : ''
  const base = from ? ` It changed the view of generation ${from}.` : ''
  return `${why(entry?.reason)}${what}${sizes}${entry ? '' : ' The entry has left the stream of outcomes.'}${base}`.trim()
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

function Summary({ of, show }: { of: NonNullable<ChangesAnswer['summary']>; show(turns: [number, number]): void }) {
  return (
    <div class="stack">
      <h3>Summary{of.turns && ` of turns ${of.turns[0]} to ${of.turns[1]}`}{of.model && `, by ${of.model}`}</h3>
      {of.text && <div class="msg new"><Text text={of.text} /></div>}
      {of.record && of.record.length > 0 && (
        <ul class="record">
          {of.record.map((line, i) => (
            <li key={i}>
              <span class="tag">{line.kind.replaceAll('_', ' ')}</span> <bdi>{line.text}</bdi> <Source line={line} show={show} />
            </li>
          ))}
        </ul>
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
