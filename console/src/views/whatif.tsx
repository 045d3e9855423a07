// The session's turns decided again under other policies.
import { useEffect, useState } from 'preact/hooks'
import { Refusal, request } from '../api'
import { count, money } from '../format'
import { Scroll } from '../parts/scroll'
import { Nothing } from '../parts/state'
import type { WhatIf } from '../types'

type Policies = NonNullable<WhatIf['policies']>

const fixed = [['target=0.5'], ['threshold=0.9', 'target=0.75']]

export function WhatIfTab({ base }: { base: string }) {
  const [threshold, setThreshold] = useState(0.8)
  const [target, setTarget] = useState(0.4)
  const [answer, setAnswer] = useState<Policies>()
  const [problem, setProblem] = useState<Refusal>()
  const [busy, setBusy] = useState(false)

  const run = async (more: string[][]) => {
    setBusy(true)
    setProblem(undefined)
    try {
      setAnswer((await request<WhatIf>(`${base}/whatif`, { method: 'POST', body: { set: [...fixed, ...more] } })).policies ?? [])
    } catch (err) {
      if (err instanceof Refusal) setProblem(err)
    } finally {
      setBusy(false)
    }
  }
  useEffect(() => { void run([]) }, [base])
  const submit = (e: Event) => {
    e.preventDefault()
    void run([[`threshold=${threshold}`, `target=${target}`]])
  }
  return (
    <>
      <form class="card" onSubmit={submit}>
        <header><h2>Another policy on this session</h2><span class="small muted">Nothing is changed.</span></header>
        <div class="body filters">
          <Slider text="Trigger" value={threshold} least={0.4} most={0.95} set={setThreshold} />
          <Slider text="Target" value={target} least={0.2} most={0.9} set={setTarget} />
          <button type="submit" class="button primary" disabled={busy || target >= threshold}>{busy ? 'Deciding again…' : 'Compare'}</button>
          {target >= threshold && <span class="small muted">The target must be below the trigger.</span>}
        </div>
      </form>
      {problem && (problem.status === 404 ? (
        <div class="card"><Nothing title="This worker does not compare policies.">Export the session, and run <code>worker replay --policy FILE</code>.</Nothing></div>
      ) : <p class="outcome bad" role="alert">{problem.message} {problem.hint}</p>)}
      {answer && <Comparison policies={answer} />}
    </>
  )
}

function Slider({ text, value, least, most, set }: { text: string; value: number; least: number; most: number; set(value: number): void }) {
  return (
    <label class="field">
      <span>{text}: <b>{value.toFixed(2)}</b></span>
      <input type="range" min={least} max={most} step={0.05} value={value} onInput={(e) => set(Number(e.currentTarget.value))} />
    </label>
  )
}

const nameOf = (set: string[]) => set.length === 0 ? 'as now' : set.map((s) => s.replace('threshold=', 'trigger ').replace('=', ' ')).join(', ')

function Comparison({ policies }: { policies: Policies }) {
  const least = Math.min(...policies.map((p) => p.mean_tokens))
  const widest = Math.max(...policies.map((p) => p.peak_tokens), 1)
  return (
    <section class="card" aria-label="Comparison">
      <header><h2>Comparison</h2><span class="small muted">Bar: mean of a call. Mark: its peak.</span></header>
      <Scroll label="Policies">
        <table>
          <thead><tr><th scope="col">Policy</th><th scope="col">Mean and peak of a call</th><th scope="col" class="num">Mean</th><th scope="col" class="num">Peak</th><th scope="col" class="num">Compactions</th><th scope="col" class="num">Saved</th><th scope="col" class="num">Cost</th><th scope="col" class="num">Lost on caches</th><th scope="col" class="num">Read again</th><th scope="col" class="num">Too large</th></tr></thead>
          <tbody>
            {policies.map((p) => (
              <tr key={p.set.join(' ')}>
                <td class="nowrap"><b>{nameOf(p.set)}</b>{p.mean_tokens === least && <> <span class="tag good">smallest calls</span></>}</td>
                <td class="meter">
                  <div class="fill" aria-hidden="true"><i style={{ width: `${(p.mean_tokens / widest) * 100}%` }} /><b style={{ left: `${(p.peak_tokens / widest) * 100}%` }} /></div>
                </td>
                <td class="num">{count(p.mean_tokens)}</td><td class="num">{count(p.peak_tokens)}</td><td class="num">{count(p.compactions)}</td><td class="num">{count(p.saved_tokens)}</td>
                <td class="num">{money(p.costs.input + p.costs.summaries)}</td><td class="num">{money(p.costs.lost)}</td><td class="num">{count(p.rereads + p.reruns)}</td><td class="num">{count(p.over_window)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  )
}
