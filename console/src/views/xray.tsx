// The parts of a call, now and before the last compaction.
import { useState } from 'preact/hooks'
import { count, percent, some } from '../format'
import type { LiveEvent } from '../live'
import { Text } from '../parts/changes'
import { Scroll } from '../parts/scroll'
import { Loaded } from '../parts/state'
import { useResource } from '../resource'
import type { Recall, Stats, Xray, XrayKind } from '../types'
import { kindColour, kindName } from '../words'

interface Props { base: string; concerns(event: LiveEvent): boolean; stats: Stats }

export function XrayTab({ base, concerns, stats }: Props) {
  const generation = stats.generation ?? 0
  const now = useResource<Xray>(`${base}/xray`, { concerns })
  const before = useResource<Xray>(generation > 0 ? `${base}/xray?generation=${generation - 1}` : undefined, { concerns })
  return (
    <Loaded of={now}>
      {(data) => (
        <>
          <Bars now={data} before={before.data} />
          <div class="columns wide-left">
            <Kinds now={data} before={before.data} />
            <Validity of={data} />
          </div>
          <Largest base={base} of={data} />
        </>
      )}
    </Loaded>
  )
}

const title = ({ kind, name }: XrayKind): string => (name ? `${kindName(kind)}, ${name}` : kindName(kind))

function Bars({ now, before }: { now: Xray; before: Xray | undefined }) {
  const available = now.available_input_tokens ?? 0
  const scale = Math.max(available, now.input_tokens ?? 0, before?.input_tokens ?? 0)
  return (
    <section class="card" aria-label="What fills the window">
      <header><h2>What fills the window</h2><span class="small muted">of {count(available)} tokens of available input: the window without the answer</span></header>
      <div class="body stack">
        <Bar text="Now" of={now} scale={scale} available={available} />
        {before && <Bar text="Before the last compaction" of={before} scale={scale} available={available} />}
      </div>
    </section>
  )
}

function Bar({ text, of, scale, available }: { text: string; of: Xray; scale: number; available: number }) {
  const kinds = inOrder(of.kinds ?? [])
  const tokens = of.input_tokens ?? 0
  const by = shrink(kinds, tokens)
  const label = `${text}: ${count(tokens)} tokens, ${percent(tokens / available)}. ${kinds.slice(0, 6).map((k) => `${title(k)} ${count(k.tokens)}`).join(', ')}`
  return (
    <div>
      <p class="small"><b>{text}</b> <span class="muted">{count(tokens)} tokens, {percent(tokens / available)}</span></p>
      <div class="segments" role="img" aria-label={label}>
        {kinds.map((k, i) => <span class={kindColour(k.kind)} style={{ flexGrow: k.tokens * by, flexBasis: 0 }} title={`${title(k)}: ${count(k.tokens)} tokens`} key={i} />)}
        <span style={{ flexGrow: Math.max(0, scale - tokens), flexBasis: 0 }} title={`Free: ${count(Math.max(0, available - tokens))} tokens`} />
      </div>
    </div>
  )
}

// Segments of one kind stand together, the kinds in the order of a request.
const order = ['system', 'tool_definition', 'record', 'summary', 'user', 'assistant', 'thinking', 'call', 'result', 'media', 'placeholder', 'correction']
const inOrder = (kinds: XrayKind[]): XrayKind[] =>
  kinds.filter((k) => k.tokens > 0).sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || b.tokens - a.tokens)

// A negative correction makes all segments smaller.
const shrink = (kinds: XrayKind[], tokens: number): number => Math.min(1, tokens / kinds.reduce((sum, k) => sum + k.tokens, 1))

function Kinds({ now, before }: { now: Xray; before: Xray | undefined }) {
  const earlier = new Map((before?.kinds ?? []).map((k) => [title(k), k.tokens]))
  const all = withCorrection(now.kinds ?? [])
  const gone = (before?.kinds ?? []).filter((k) => !all.some((n) => title(n) === title(k)))
  const total = now.input_tokens || 1
  return (
    <section class="card" aria-label="By kind">
      <header><h2>By kind</h2></header>
      <Scroll label="By kind">
        <table>
          <thead><tr><th scope="col">Kind</th><th scope="col" class="num">Count</th><th scope="col" class="num">Tokens</th><th scope="col" class="num">Share</th>{before && <th scope="col" class="num">Before</th>}</tr></thead>
          <tbody>
            {[...all, ...gone.map((k) => ({ ...k, tokens: 0, count: 0 }))].map((k) => (
              <tr key={title(k)}>
                <td><i class={`swatch ${kindColour(k.kind)}`} aria-hidden="true" />{kindName(k.kind)} {k.name && <span class="muted mono"><bdi>{k.name}</bdi></span>}</td>
                <td class="num">{count(k.count)}</td><td class="num">{count(k.tokens)}</td><td class="num">{percent(k.tokens / total)}</td>
                {before && <td class="num muted">{count(earlier.get(title(k)) ?? 0)}</td>}
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr><th scope="row">Input of the call</th><td /><td class="num">{count(now.input_tokens)}</td><td class="num">{percent(1)}</td>{before && <td class="num">{count(before.input_tokens)}</td>}</tr>
          </tfoot>
        </table>
      </Scroll>
      <p class="body small muted">The correction is what the provider counted beside the estimates of the other kinds.</p>
    </section>
  )
}

// The correction has a row even while it is 0, beside that of before.
const withCorrection = (kinds: XrayKind[]): XrayKind[] =>
  kinds.some((k) => k.kind === 'correction') ? kinds : [...kinds, { kind: 'correction', tokens: 0 }]

function Validity({ of }: { of: Xray }) {
  const violations = of.violations ?? []
  return (
    <section class="card" aria-label="Validity">
      <header><h2>Rules of the provider</h2>{violations.length === 0 ? <span class="tag good">valid</span> : <span class="tag bad">{some(violations.length, 'violation')}</span>}</header>
      {violations.length === 0 ? <p class="body muted">A provider accepts this history as it is: calls and results are in pairs, and roles in order.</p> : (
        <ul class="feed">
          {violations.map((v, i) => <li key={i}><span class="muted">{v.index !== undefined ? `no. ${v.index}` : ''}</span><span><b>{v.rule}</b> {v.message}</span></li>)}
        </ul>
      )}
    </section>
  )
}

function Largest({ base, of }: { base: string; of: Xray }) {
  const entries = of.largest ?? []
  const [shown, setShown] = useState<number>()
  if (!entries.length) return null
  const total = of.input_tokens || 1
  return (
    <section class="card" aria-label="Largest entries">
      <header><h2>Largest entries</h2></header>
      <Scroll label="Largest entries">
        <table>
          <thead><tr><th scope="col">Kind</th><th scope="col">Place</th><th scope="col" class="num">Tokens</th><th scope="col" class="num">Share</th><th scope="col">Beginning</th></tr></thead>
          <tbody>
            {entries.map((e, i) => (
              <tr key={i}>
                <td class="nowrap"><i class={`swatch ${kindColour(e.kind)}`} aria-hidden="true" />{kindName(e.kind)} {e.name && <span class="muted mono"><bdi>{e.name.slice(0, 40)}</bdi></span>}</td>
                <td class="nowrap">{e.turn === undefined ? '–' : <button type="button" class="button plain" aria-expanded={shown === i} onClick={() => setShown(shown === i ? undefined : i)}>turn {e.turn}, message {e.index ?? 0}</button>}</td>
                <td class="num">{count(e.tokens)}</td><td class="num">{percent(e.tokens / total)}</td>
                <td class="excerpt"><bdi class="mono muted">{e.excerpt}</bdi></td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {shown !== undefined && entries[shown]?.turn !== undefined && <Original key={shown} base={base} turn={entries[shown].turn} index={entries[shown].index ?? 0} />}
    </section>
  )
}

function Original({ base, turn, index }: { base: string; turn: number; index: number }) {
  const recall = useResource<Recall>(`${base}/recall?turn=${turn}&index=${index}`)
  return (
    <div class="body">
      <h3>Turn {turn}, message {index}, as published</h3>
      <Loaded of={recall}>{(data) => <div class="msg"><Text text={JSON.stringify(data.messages?.length === 1 ? data.messages[0] : data.messages, null, 2)} /></div>}</Loaded>
    </div>
  )
}

