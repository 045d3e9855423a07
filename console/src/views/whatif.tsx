// What another policy would have done with this session.
import { useMemo, useState } from 'preact/hooks'
import { Refusal, request } from '../api'
import { count, money } from '../format'
import { Plot, type Level, type Line } from '../parts/plot'
import { Nothing } from '../parts/state'
import type { Stats, Timeline, WhatIf } from '../types'

interface Props { base: string; stats: Stats; timeline: Timeline | undefined }

type Policies = NonNullable<WhatIf['policies']>

const fixed = [
  { name: 'target 0.5', policy: { target: 0.5 } },
  { name: 'trigger 0.9', policy: { threshold: 0.9 } },
]

export function WhatIfTab({ base, timeline }: Props) {
  const [threshold, setThreshold] = useState(0.8)
  const [target, setTarget] = useState(0.5)
  const [answer, setAnswer] = useState<Policies>()
  const [problem, setProblem] = useState<Refusal>()
  const [busy, setBusy] = useState(false)
  const mine = `trigger ${threshold}, target ${target}`

  const run = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    setProblem(undefined)
    const policies = [{ name: 'as now', policy: {} }, { name: mine, policy: { threshold, target } }, ...fixed]
    try {
      setAnswer((await request<WhatIf>(`${base}/whatif`, { method: 'POST', body: { policies } })).policies ?? [])
    } catch (err) {
      if (err instanceof Refusal) setProblem(err)
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <form class="card" onSubmit={run}>
        <header><h2>Another policy on this session</h2><span class="small muted">Nothing is changed.</span></header>
        <div class="body filters">
          <Slider text="Trigger" value={threshold} least={0.4} most={0.95} set={setThreshold} />
          <Slider text="Target" value={target} least={0.2} most={0.9} set={setTarget} />
          <button type="submit" class="button primary" disabled={busy || target >= threshold}>{busy ? 'Replaying…' : 'Replay with it'}</button>
          {target >= threshold && <span class="small muted">The target must be below the trigger.</span>}
        </div>
      </form>
      {problem && (problem.status === 404 ? (
        <div class="card"><Nothing title="This worker does not replay sessions.">Export it, and run <code>worker replay --policy FILE</code>.</Nothing></div>
      ) : <p class="outcome bad" role="alert">{problem.message} {problem.hint}</p>)}
      {answer && <Comparison policies={answer} timeline={timeline} />}
    </>
  )
}

function Slider({ text, value, least, most, set }: { text: string; value: number; least: number; most: number; set(value: number): void }) {
  return (
    <label class="field">
      <span>{text}: <b>{value.toFixed(2)}</b> of the available input</span>
      <input type="range" min={least} max={most} step={0.05} value={value} onInput={(e) => set(Number(e.currentTarget.value))} />
    </label>
  )
}

const lines: Line[] = [
  { label: 'as now', colour: '--muted' }, { label: '1', colour: '--accent', fill: true }, { label: '2', colour: '--c-user', dash: [6, 4] }, { label: '3', colour: '--c-calls', dash: [2, 4] },
]

function Comparison({ policies, timeline }: { policies: Policies; timeline: Timeline | undefined }) {
  const plotted = useMemo(() => {
    const turns = policies[0]?.turns
    if (!turns?.length) return undefined
    return { x: turns.map((t) => t.turn), lines: policies.slice(0, lines.length).map((p, i) => ({ line: { ...lines[i]!, label: p.name }, values: (p.turns ?? []).map((t) => t.input_tokens) })) }
  }, [policies])
  const levels = useMemo((): Level[] => (timeline?.available_input_tokens ? [{ label: 'available', value: timeline.available_input_tokens, colour: '--bad' }] : []), [timeline])
  const least = Math.min(...policies.map((p) => p.mean_tokens ?? Infinity))
  const widest = Math.max(...policies.map((p) => p.peak_tokens ?? 0), timeline?.available_input_tokens ?? 0, 1)
  return (
    <section class="card" aria-label="Comparison">
      <header><h2>Comparison</h2>{plotted && <span class="small muted plot-key">{policies.slice(0, lines.length).map((p, i) => <span key={p.name}><i class={`key-${i}`} />{p.name}</span>)}</span>}</header>
      {plotted && <div class="body"><Plot label="Tokens turn by turn under each policy" height={240} x={plotted.x} lines={plotted.lines} levels={levels} /></div>}
      <div class="scroll">
        <table>
          <thead><tr><th scope="col">Policy</th><th scope="col">Mean and peak of a call</th><th scope="col" class="num">Mean</th><th scope="col" class="num">Peak</th><th scope="col" class="num">Compactions</th><th scope="col" class="num">Saved</th><th scope="col" class="num">Cost</th><th scope="col" class="num">Read again</th><th scope="col">Fits</th></tr></thead>
          <tbody>
            {policies.map((p) => (
              <tr key={p.name}>
                <td class="nowrap"><b>{p.name}</b>{p.mean_tokens === least && <> <span class="tag good">smallest calls</span></>}</td>
                <td class="meter">
                  <div class="fill" aria-hidden="true"><i style={{ width: `${((p.mean_tokens ?? 0) / widest) * 100}%` }} /><b style={{ left: `${((p.peak_tokens ?? 0) / widest) * 100}%` }} /></div>
                </td>
                <td class="num">{count(p.mean_tokens)}</td><td class="num">{count(p.peak_tokens)}</td><td class="num">{count(p.compactions)}</td><td class="num">{count(p.saved_tokens)}</td>
                <td class="num">{money(p.cost_nano_usd)}</td><td class="num">{count((p.rereads ?? 0) + (p.reruns ?? 0))}</td><td>{p.would_overflow ? <span class="tag bad">overflows</span> : <span class="tag good">yes</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
