// The session's turns decided again under other policies.
import { useEffect, useState } from 'preact/hooks'
import { Refusal, request } from '../api'
import { count, money, percent, some } from '../format'
import { Scroll } from '../parts/scroll'
import { Nothing } from '../parts/state'
import { replaceQuery, useRoute } from '../route'
import type { Choice, WhatIf } from '../types'

const usual = [['target=0.5'], ['trigger_mode=ratio', 'threshold=0.9', 'target=0.75']]

interface Shares { threshold: number; target: number }

// The fields of a policy with these shares; the level info begins below the threshold.
function fields({ threshold, target }: Shares, now: Choice | undefined): string[] {
  const set = ['trigger_mode=ratio', `threshold=${threshold}`, `target=${target}`]
  return (now?.policy.info ?? 0.6) > threshold ? [...set, `info=${threshold}`] : set
}

export function WhatIfTab({ base }: { base: string }) {
  const { query } = useRoute()
  const [own, setOwn] = useState<Partial<Shares>>({ ...share(query, 'threshold'), ...share(query, 'target') })
  const [answer, setAnswer] = useState<Choice[]>()
  const [problem, setProblem] = useState<Error>()
  const [busy, setBusy] = useState(false)
  const now = answer?.[0]
  const shares: Shares = { threshold: own.threshold ?? now?.policy.threshold ?? 0.8, target: own.target ?? now?.policy.target ?? 0.6 }

  const compare = async (sets: string[][]) => setAnswer((await request<WhatIf>(`${base}/whatif`, { method: 'POST', body: { set: sets } })).policies ?? [])
  const run = async (chosen: Shares | undefined) => {
    setBusy(true)
    setProblem(undefined)
    try {
      await compare(chosen ? [fields(chosen, now), ...usual] : usual).catch((err) => {
        if (!(err instanceof Refusal) || err.code !== 'bad_policy') throw err
        return compare(chosen ? [fields(chosen, now)] : []) // the usual ones do not fit the policy in force
      })
    } catch (err) {
      setProblem(err instanceof Error ? err : new Error(String(err)))
    } finally {
      setBusy(false)
    }
  }
  useEffect(() => { void run(own.threshold || own.target ? shares : undefined) }, [base])
  const submit = (e: Event) => {
    e.preventDefault()
    replaceQuery({ ...shares })
    void run(shares)
  }
  return (
    <>
      <form class="card" onSubmit={submit}>
        <header><h2>Another policy on this session</h2><span class="small muted">Nothing is changed.</span></header>
        <div class="body filters">
          <Slider text="Threshold" value={shares.threshold} least={0.4} most={0.95} set={(threshold) => setOwn({ ...own, threshold })} />
          <Slider text="Target" value={shares.target} least={0.2} most={0.9} set={(target) => setOwn({ ...own, target })} />
          <button type="submit" class="button primary" disabled={busy || shares.target >= shares.threshold}>{busy ? 'Deciding again…' : 'Compare'}</button>
          <span class="small muted hint">{shares.target >= shares.threshold ? 'The target must be below the threshold.' : 'A session is compacted at the threshold, down to the target: shares of the room for the history.'}</span>
        </div>
      </form>
      {problem && (problem instanceof Refusal && problem.status === 404 ? (
        <div class="card"><Nothing title="This worker does not compare policies.">Export the session, and run <code>worker replay --policy FILE</code>.</Nothing></div>
      ) : <p class="outcome bad" role="alert">{problem.message} {problem instanceof Refusal && problem.hint}</p>)}
      {!answer && !problem && <div class="empty" role="status">Deciding the session again…</div>}
      {now && <Comparison choices={answer} now={now} />}
    </>
  )
}

function share(query: URLSearchParams, name: 'threshold' | 'target'): Partial<Shares> {
  const value = Number(query.get(name) ?? NaN)
  return value > 0 && value <= 1 ? { [name]: value } : {}
}

function Slider({ text, value, least, most, set }: { text: string; value: number; least: number; most: number; set(value: number): void }) {
  return (
    <label class="field">
      <span>{text}: <b>{value.toFixed(2)}</b></span>
      <input type="range" min={least} max={most} step={0.05} value={value} onInput={(e) => set(Number(e.currentTarget.value))} />
    </label>
  )
}

// The shares of a policy; where it has a threshold in tokens, that.
function nameOf({ policy: p, trigger_tokens }: Choice): string {
  if (!p.enabled) return 'never compacted'
  return `threshold ${p.trigger_mode === 'ratio' ? p.threshold : `${count(trigger_tokens)} tokens`}, target ${p.target}`
}

const cost = ({ costs }: Choice): number => costs.input + costs.summaries

/** What a policy is measured by: money, or tokens where no list has the price of the model. */
interface Measure { of(choice: Choice): number; text(value: number): string; best: string; least: string }

const byMoney: Measure = { of: cost, text: money, best: 'cheapest', least: 'cost least' }
const byTokens: Measure = { of: (c) => c.sent_tokens, text: (n) => `${count(n)} tokens`, best: 'fewest tokens', least: 'send fewest tokens' }

const measureOf = (choices: Choice[]): Measure => (choices.every((c) => c.costs.priced_calls > 0) ? byMoney : byTokens)

const ofFacts = ({ facts }: Choice, of: 'kept' | 'all'): number => Object.values(facts).reduce((sum, share) => sum + share[of], 0)
const compactions = (c: Choice): number => c.compactions - (c.reasons.rewind ?? 0)

// The best of the policies whose calls fit their model; what was recorded where another is no better by half a percent.
function bestOf(choices: Choice[], by: Measure): Choice {
  const least = Math.min(...choices.map((c) => c.over_window))
  const fit = choices.filter((c) => c.over_window === least)
  const best = fit.reduce((a, b) => (by.of(b) < by.of(a) ? b : a))
  const now = choices[0]!
  return fit.includes(now) && by.of(now) <= by.of(best) * 1.005 ? now : best
}

// The answer in a sentence, and what to know beside it.
function verdict(choices: Choice[], best: Choice, by: Measure): [string, string] {
  const now = choices[0]!
  if (choices.every((c) => compactions(c) === 0)) return ['No difference.', 'None of these policies would have compacted the session: it reached no threshold.']
  if (best !== now) {
    const again = best.rereads + best.reruns - now.rereads - now.reruns
    const fewer = ofFacts(now, 'kept') - ofFacts(best, 'kept')
    const price = (again > 0 ? ` The agent would have read or run ${some(again, 'thing')} again that it had.` : '')
      + (fewer > 0 ? ` It would have had ${some(fewer, 'fact')} less of ${count(ofFacts(now, 'all'))}.` : '')
    return [`${by.best[0]!.toUpperCase()}${by.best.slice(1)}: ${nameOf(best)}.`, `It would ${by.least}: ${by.text(by.of(best))}, ${difference(by.of(best), by.of(now), by)} than it did.${price}`]
  }
  const others = choices.slice(1).map((c) => `${nameOf(c)}: ${difference(by.of(c), by.of(now), by)}`)
  if (!others.length) return ['These are the shares in force.', '']
  return ['No better policy here.', `As it was: ${by.text(by.of(now))}. With ${others.join('; with ')}.`]
}

function difference(value: number, now: number, by: Measure): string {
  const share = now ? Math.abs(value - now) / now : 0
  if (share < 0.0005) return 'the same'
  return `${by.text(Math.abs(value - now))} (${percent(share)}) ${value > now ? 'more' : 'less'}`
}

function Comparison({ choices, now }: { choices: Choice[]; now: Choice }) {
  const by = measureOf(choices)
  const best = bestOf(choices, by)
  const most = Math.max(...choices.map(by.of), 1)
  const [answer, detail] = verdict(choices, best, by)
  return (
    <section class="card" aria-label="Comparison">
      <header><h2>Comparison</h2><span class="small muted">{some(now.calls, 'call')} of this session, decided again</span></header>
      <p class="body verdict" role="status"><b>{answer}</b> {detail}</p>
      <Scroll label="Policies">
        <table>
          <thead>
            <tr>
              <th scope="col">Policy</th><th scope="col">{by === byMoney ? 'Cost' : 'Tokens sent'}</th><th scope="col" class="num">Difference</th><th scope="col" class="num">Lost on caches</th><th scope="col" class="num">Summaries</th>
              <th scope="col" class="num">Compactions</th><th scope="col" class="num">Mean call</th><th scope="col" class="num">Peak</th><th scope="col" class="num">Read or run again</th><th scope="col" class="num">Facts kept</th><th scope="col" class="num">Too large</th>
            </tr>
          </thead>
          <tbody>
            {choices.map((c) => (
              <tr key={c.set.join(' ')}>
                <td class="policy">
                  <b>{nameOf(c)}</b>{c === now ? <> <span class="tag info">as it was</span></> : !c.set.length && <> <span class="tag info">in force</span></>}{c === best && choices.length > 1 && <> <span class="tag good">{by.best}</span></>}
                  {c.policy.enabled && <div class="small muted">at {count(c.trigger_tokens)} tokens, down to {count(c.target_tokens)}</div>}
                </td>
                <td class="meter">{by.text(by.of(c))}<div class="fill thin" aria-hidden="true"><i style={{ width: `${(by.of(c) / most) * 100}%` }} /></div></td>
                <td class="num">{c === now ? '–' : difference(by.of(c), by.of(now), by)}</td>
                <td class="num">{money(c.costs.lost)}</td>
                <td class="num">{money(c.costs.summaries)} <span class="muted small">for {count(c.summaries.made)}</span></td>
                <td class="num">{count(compactions(c))}</td><td class="num">{count(c.mean_tokens)}</td><td class="num">{count(c.peak_tokens)}</td>
                <td class="num">{count(c.rereads + c.reruns)}</td><td class="num">{count(ofFacts(c, 'kept'))} <span class="muted small">of {count(ofFacts(c, 'all'))}</span></td><td class="num">{c.over_window ? <span class="tag bad">{count(c.over_window)}</span> : '0'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <p class="body small muted">{by === byMoney ? 'Input of all calls at list prices, with what the provider has cached, and summaries. Lost on caches is counted call by call. ' : 'No list has the price of this model. '}{priceOf(now)} {basisOf(now)} From its first difference on, a row is without rewinds and refusals of the provider. Facts are paths, failures and the like, looked for after each tenth of the session.</p>
    </section>
  )
}

function priceOf({ summaries_by, summaries_unpriced }: Choice): string {
  if (summaries_by === 'embedded') return 'Summaries cost nothing: the embedded summarizer writes them.'
  return summaries_unpriced ? `Summaries are by ${summaries_by}, whose price no list has; they are not counted.` : `Summaries are by ${summaries_by}, at its list price.`
}

// On which counts the amounts are.
function basisOf({ costs: { reported_calls: reported = 0, estimated_calls: estimated = 0 } }: Choice): string {
  if (!reported) return 'The first row is what was spent, by estimate: no call has a usage of the provider.'
  const missing = estimated ? `; ${some(estimated, 'call')} without one by estimate` : ''
  return `The first row is what was spent, by the usage of the provider${missing}. The others are estimates, scaled alike.`
}
