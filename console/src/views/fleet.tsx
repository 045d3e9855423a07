// The fleet: who serves which partition, how the workers are, and what happened last.
import { useEffect, useRef, useState } from 'preact/hooks'
import { away } from '../api'
import { ago, bytes, clock, count, percent, some, span } from '../format'
import { Scroll } from '../parts/scroll'
import { Loaded, Nothing } from '../parts/state'
import { useResource } from '../resource'
import { useStore } from '../store'
import type { Commits, Fleet, PartitionRow, WorkerRow } from '../types'
import { feedKind } from '../words'

export function FleetView() {
  const fleet = useResource<Fleet>('/v1/fleet', { every: 2000, concerns: ({ kind }) => kind === 'takeover' })
  return (
    <Loaded of={fleet}>
      {(data) => (
        <>
          <div class="head"><div><h1>Fleet</h1><p class="muted">{state(data)}</p></div></div>
          <Facts of={data} />
          <div class="columns wide-left">
            <div class="stack gap">
              <Workers of={data} />
              <Partitions of={data} />
            </div>
            <div class="stack gap">
              <Lanes of={data} />
              <Feed of={data} />
            </div>
          </div>
        </>
      )}
    </Loaded>
  )
}

const unserved = (f: Fleet): PartitionRow[] => f.partitions.filter((p) => !p.leased)
const lag = (f: Fleet): number => Math.max(0, ...f.partitions.map((p) => p.lag_ms ?? 0))

function state(f: Fleet): string {
  const none = unserved(f)
  if (none.length) return `No worker serves partition ${none.map((p) => p.partition).join(', ')}. Its sessions wait.`
  const silent = f.workers.filter((w) => w.answered === false)
  if (silent.length) return `${silent.map((w) => w.owner).join(', ')} ${silent.length === 1 ? 'gives' : 'give'} no answer.`
  const slow = f.partitions.filter((p) => (p.lag_ms ?? 0) > 10_000)
  if (slow.length) return `Partition ${slow.map((p) => p.partition).join(', ')} is more than 10 s behind.`
  return `${some(f.workers.length, 'worker')} ${f.workers.length === 1 ? 'serves' : 'serve'} all ${some(f.partitions.length, 'partition')}.`
}

function Facts({ of }: { of: Fleet }) {
  const waiting = (of.lanes ?? []).reduce((sum, l) => sum + (l.waiting ?? 0), 0)
  return (
    <dl class="facts">
      <div><dt>Workers</dt><dd>{count(of.workers.length)}</dd></div>
      <div><dt>Partitions served</dt><dd>{count(of.partitions.length - unserved(of).length)} <small>of {count(of.partitions.length)}</small></dd></div>
      <div><dt>Largest lag</dt><dd>{span(lag(of) / 1000)}</dd></div>
      <div><dt>Events behind</dt><dd>{count(of.partitions.reduce((sum, p) => sum + (p.behind ?? 0), 0))}</dd></div>
      <div><dt>Summary jobs waiting</dt><dd>{count(waiting)}</dd></div>
    </dl>
  )
}

// The processor time of a worker since the last answer, over the time between.
function useLoad(of: Fleet): Map<string, number> {
  const before = useRef(new Map<string, { at: number; cpu: number }>())
  const [load, set] = useState(new Map<string, number>())
  useEffect(() => {
    const next = new Map(load)
    for (const w of of.workers) {
      const last = before.current.get(w.owner)
      if (w.cpu_ms === undefined) continue
      if (last && of.time_ms > last.at) next.set(w.owner, Math.max(0, (w.cpu_ms - last.cpu) / (of.time_ms - last.at) / (w.cpus || 1)))
      before.current.set(w.owner, { at: of.time_ms, cpu: w.cpu_ms })
    }
    set(next)
  }, [of])
  return load
}

/** A worker, with what of it follows from its partitions. */
interface Seen extends WorkerRow { lag: number; behind: number; stopped?: boolean }

function seen(w: WorkerRow, partitions: PartitionRow[]): Seen {
  const own = partitions.filter((p) => p.leased && p.owner === w.owner)
  return { ...w, partitions: own.length, lag: w.lag_ms ?? Math.max(0, ...own.map((p) => p.lag_ms ?? 0)), behind: own.reduce((sum, p) => sum + (p.behind ?? 0), 0) }
}

// The workers, the slowest first, and those that an earlier answer had: they have stopped.
function useWorkers(of: Fleet): Seen[] {
  const before = useRef(new Map<string, Seen>())
  const now = of.workers.map((w) => seen(w, of.partitions))
  for (const w of now) before.current.set(w.owner, w)
  const running = new Set(now.map((w) => w.owner))
  const stopped = [...before.current.values()].filter((w) => !running.has(w.owner)).map((w) => ({ ...w, lag: 0, behind: 0, partitions: 0, stopped: true }))
  return [...now.sort((a, b) => b.lag - a.lag || (b.commits?.p99_us ?? 0) - (a.commits?.p99_us ?? 0) || a.owner.localeCompare(b.owner)), ...stopped]
}

function Workers({ of }: { of: Fleet }) {
  const load = useLoad(of)
  const workers = useWorkers(of)
  return (
    <section class="card" aria-label="Workers">
      <header><h2>Workers</h2><span class="small muted">slowest first</span></header>
      <Scroll label="Workers">
        <table>
          <thead>
            <tr>
              <th scope="col">Worker</th><th scope="col">Status</th><th scope="col" class="num">Lag</th><th scope="col" class="num">Behind</th><th scope="col" class="num">Commit, 99 %</th><th scope="col" class="num">Partitions</th>
              <th scope="col" class="num">CPU</th><th scope="col" class="num">Memory</th><th scope="col" class="num">Started</th><th scope="col">Version</th>
            </tr>
          </thead>
          <tbody>{workers.map((w) => <Worker of={w} load={load.get(w.owner)} key={w.owner} />)}</tbody>
        </table>
      </Scroll>
    </section>
  )
}

const tags: Record<string, string> = { ok: 'good', starting: 'info', stopped: '' }

function Worker({ of, load }: { of: Seen; load: number | undefined }) {
  const lost = useStore(away) !== undefined && of.http === location.host // the worker that answers this page
  const status = of.stopped ? 'stopped' : lost || of.answered === false ? 'no answer' : (of.status ?? 'ok')
  return (
    <tr class={of.stopped ? 'stale' : undefined}>
      <td class="nowrap"><b>{of.owner}</b></td>
      <td><span class={`tag ${tags[status] ?? 'bad'}`}>{status}</span></td>
      <td class="num"><Lag ms={of.lag} /></td>
      <td class="num">{count(of.behind)}</td>
      <td class="num"><Commit of={of.stopped ? undefined : of.commits} /></td>
      <td class="num">{count(of.partitions)}</td>
      <td class="num">{load === undefined || of.stopped ? '–' : percent(load)} <span class="muted small">of {of.cpus ?? '?'}</span></td>
      <td class="num">{bytes(of.memory_bytes)} {of.memory_limit_bytes ? <span class="muted small">of {bytes(of.memory_limit_bytes)}</span> : null}</td>
      <td class="num muted">{ago(of.started_ms)}</td>
      <td class="mono nowrap">{of.version ?? '–'}<div class="small muted" title={of.config}>{of.config && `config ${of.config.slice(0, 8)}`}</div></td>
    </tr>
  )
}

const Lag = ({ ms }: { ms: number | undefined }) => <span class={(ms ?? 0) > 10_000 ? 'tag bad' : ''}>{span((ms ?? 0) / 1000)}</span>

// The time that 99 of 100 commits of the last minute took at most.
function Commit({ of }: { of: Commits | undefined }) {
  if (!of?.count) return <>–</>
  const ms = (us: number | undefined) => (us === undefined ? '–' : us < 100_000 ? `${(us / 1000).toFixed(1)} ms` : span(us / 1e6))
  return <span class={(of.p99_us ?? 0) > 1_000_000 ? 'tag warn' : ''} title={`${some(of.count, 'commit')} in the last minute: half within ${ms(of.p50_us)}, the longest ${ms(of.longest_us)}`}>{ms(of.p99_us)}</span>
}

// A partition that nobody serves is the slowest.
const slowest = (a: PartitionRow, b: PartitionRow): number =>
  Number(a.leased ?? false) - Number(b.leased ?? false) || (b.lag_ms ?? 0) - (a.lag_ms ?? 0) || (b.commits?.p99_us ?? 0) - (a.commits?.p99_us ?? 0) || a.partition - b.partition

function Partitions({ of }: { of: Fleet }) {
  return (
    <section class="card" aria-label="Partitions">
      <header><h2>Partitions</h2><span class="small muted">slowest first</span></header>
      <Scroll label="Partitions">
        <table>
          <thead>
            <tr>
              <th scope="col" class="num">No.</th><th scope="col">Owner</th><th scope="col" class="num">Lag</th><th scope="col" class="num">Behind</th><th scope="col" class="num">Commit, 99 %</th><th scope="col" class="num">In memory</th><th scope="col" class="num">Lease age</th>
              <th scope="col" class="num">Epoch</th><th scope="col" class="num">Cursor</th><th scope="col" class="num">Checkpoint</th><th scope="col" class="num">Snapshot</th>
            </tr>
          </thead>
          <tbody>
            {[...of.partitions].sort(slowest).map((p) => (
              <tr key={p.partition}>
                <td class="num">{p.partition}</td>
                <td class="nowrap">{!p.leased ? <span class="tag bad">{p.owner ? 'not served' : 'never served'}</span> : <>{p.owner}{p.served === false && <> <span class="tag warn">no answer</span></>}</>}</td>
                <td class="num"><Lag ms={p.lag_ms} /></td>
                <td class="num">{count(p.behind ?? 0)}</td><td class="num"><Commit of={p.commits} /></td><td class="num">{count(p.sessions)}</td><td class="num">{p.lease_age_ms === undefined ? '–' : span(p.lease_age_ms / 1000)}</td>
                <td class="num">{count(p.epoch)}</td><td class="num">{count(p.cursor ?? 0)}</td><td class="num">{ago(p.checkpoint_ms, of.time_ms)}</td>
                <td class="num" title={p.snapshot_bytes ? bytes(p.snapshot_bytes) : undefined}>{ago(p.snapshot_ms, of.time_ms)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  )
}

function Lanes({ of }: { of: Fleet }) {
  return (
    <section class="card" aria-label="Summary jobs">
      <header><h2>Summary jobs</h2></header>
      <table>
        <thead><tr><th scope="col">Lane</th><th scope="col" class="num">Waiting</th><th scope="col" class="num">Running</th></tr></thead>
        <tbody>{(of.lanes ?? []).map((l) => <tr key={l.lane}><td>{l.lane}</td><td class="num">{count(l.waiting ?? 0)}</td><td class="num">{count(l.running ?? 0)}</td></tr>)}</tbody>
      </table>
      {of.models && of.models.length > 0 && (
        <table>
          <thead><tr><th scope="col">Model</th><th scope="col">Circuit</th></tr></thead>
          <tbody>{of.models.map((m) => <tr key={m.owner + m.model}><td>{m.model}</td><td><span class={`tag ${m.circuit === 'closed' ? 'good' : m.circuit === 'open' ? 'bad' : 'warn'}`}>{m.circuit}</span></td></tr>)}</tbody>
        </table>
      )}
    </section>
  )
}

function Feed({ of }: { of: Fleet }) {
  const feed = of.feed ?? []
  return (
    <section class="card" aria-label="Hand-overs and failures">
      <header><h2>Hand-overs and failures</h2></header>
      {feed.length === 0 ? <Nothing title="Nothing happened yet." /> : (
        <ul class="feed">
          {feed.map((f, i) => {
            const [text, tag] = feedKind(f.kind)
            return (
              <li key={i}>
                <time dateTime={new Date(f.time_ms).toISOString()}>{clock(f.time_ms)}</time>
                <span><span class={`tag ${tag}`}>{text}</span> {f.partition !== undefined && <span class="muted">partition {f.partition}</span>} <bdi>{f.text}</bdi></span>
              </li>
            )
          })}
        </ul>
      )}
    </section>
  )
}
