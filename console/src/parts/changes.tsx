// A history before and after a compaction, message beside message.
import { diffWordsWithSpace } from 'diff'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { request } from '../api'
import { count } from '../format'
import type { Change, Recall } from '../types'
import { op } from '../words'

interface Props {
  base: string // the path of the session
  rows: Change[]
  /** Turns to show and scroll to, as those that a line of a summary comes from. */
  turns: [number, number] | undefined
}

/** Rows, with neighbours that were kept as they were in one group. */
export function Changes({ base, rows, turns }: Props) {
  const groups = useMemo(() => group(rows), [rows])
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (turns) box.current?.querySelector<HTMLElement>('[data-shown=true]')?.scrollIntoView({ block: 'nearest' })
  }, [turns])
  return (
    <div ref={box}>
      <div class="pair pair-head" aria-hidden="true"><span>Before</span><span>After</span></div>
      {groups.map((rows, i) => (rows[0]!.action === 'kept' ? <Kept rows={rows} turns={turns} key={i} /> : <Pair base={base} row={rows[0]!} shown={within(rows[0]!, turns)} key={i} />))}
    </div>
  )
}

function group(rows: Change[]): Change[][] {
  const groups: Change[][] = []
  for (const row of rows) {
    const last = groups.at(-1)
    if (row.action === 'kept' && last?.[0]?.action === 'kept') last.push(row)
    else groups.push([row])
  }
  return groups
}

const within = (row: Change, turns: [number, number] | undefined): boolean => !!turns && row.turn !== undefined && row.turn >= turns[0] && row.turn <= turns[1]

function Kept({ rows, turns }: { rows: Change[]; turns: [number, number] | undefined }) {
  const [open, setOpen] = useState(false)
  const shown = rows.some((row) => within(row, turns))
  useEffect(() => {
    if (shown) setOpen(true)
  }, [shown])
  const tokens = rows.reduce((sum, row) => sum + (row.tokens_before ?? row.tokens_after ?? 0), 0)
  return (
    <>
      <div class="kept">
        <button type="button" class="button plain" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Hide' : 'Show'} {rows.length === 1 ? '1 message kept as it was' : `${count(rows.length)} messages kept as they were`}, {count(tokens)} tokens
        </button>
      </div>
      {open && rows.map((row, i) => <div class="pair one" data-shown={within(row, turns)} key={i}><Message row={row} text={row.before ?? row.after ?? ''} tokens={row.tokens_before} state="same" /></div>)}
    </>
  )
}

function Pair({ base, row, shown }: { base: string; row: Change; shown: boolean }) {
  const parts = useMemo(() => difference(row), [row])
  return (
    <div class="pair" data-shown={shown}>
      {row.before === undefined ? <span class="absent" /> : (
        <Message row={row} text={row.before} tokens={row.tokens_before} state={row.action === 'removed' ? 'gone' : 'changed'} parts={parts?.before} original={<Original base={base} row={row} />} />
      )}
      {row.after === undefined ? <p class="absent muted small">{row.op === 'condense' ? 'in the summary' : row.op === 'truncate' ? 'behind the notice' : 'not in view'}</p> : (
        <Message row={row} text={row.after} tokens={row.tokens_after} state={row.action === 'added' ? 'new' : 'changed'} parts={parts?.after} />
      )}
    </div>
  )
}

type Part = { text: string; kind: 'same' | 'ins' | 'del' }

// Words are compared where the texts are short and much of one is in the other: a placeholder
// beside a long result has nothing to compare.
function difference(row: Change): { before: Part[]; after: Part[] } | undefined {
  const { before, after } = row
  if (row.action !== 'changed' || !before || !after || before.length + after.length > 24_000) return undefined
  if (Math.min(before.length, after.length) < 0.25 * Math.max(before.length, after.length)) return undefined
  const changes = diffWordsWithSpace(before, after, { maxEditLength: 800, timeout: 60 })
  if (!changes) return undefined
  const out: { before: Part[]; after: Part[] } = { before: [], after: [] }
  for (const { value, added, removed } of changes) {
    if (!added) out.before.push({ text: value, kind: removed ? 'del' : 'same' })
    if (!removed) out.after.push({ text: value, kind: added ? 'ins' : 'same' })
  }
  return out
}

interface MessageProps {
  row: Change
  text: string
  tokens: number | undefined
  state: 'same' | 'gone' | 'changed' | 'new'
  parts?: Part[] | undefined
  original?: preact.ComponentChild
}

function Message({ row, text, tokens, state, parts, original }: MessageProps) {
  return (
    <div class={`msg ${state}`}>
      <header>
        <b>{row.role ?? 'message'}</b>
        {row.turn !== undefined && <span>turn {row.turn}, message {row.index ?? 0}</span>}
        {tokens !== undefined && <span>{count(tokens)} tokens</span>}
        {row.op && state !== 'same' && <span class="tag">{op(row.op)}</span>}
      </header>
      <Text text={text} parts={parts} />
      {row.cut && <p class="muted small">The text is longer than shown here.</p>}
      {original}
    </div>
  )
}

// The part of a text that is shown at first.
const shortest = { characters: 900, lines: 9 }

function beginning(text: string): string {
  const head = text.slice(0, shortest.characters)
  return head.split('\n', shortest.lines).join('\n')
}

/** A text of any length: the beginning, and the rest on request. */
export function Text({ text, parts }: { text: string; parts?: Part[] | undefined }) {
  const [all, setAll] = useState(false)
  const head = useMemo(() => beginning(text), [text])
  const long = head.length < text.length
  const whole = all || !long
  return (
    <>
      <pre dir="auto" class={long && all ? 'tall' : undefined} tabIndex={long && all ? 0 : undefined}>{whole ? (parts ? parts.map(marked) : text) : `${head}…`}</pre>
      {long && <button type="button" class="button plain small" aria-expanded={all} onClick={() => setAll(!all)}>{all ? 'Show less' : `Show all ${count(text.length)} characters`}</button>}
    </>
  )
}

function marked({ text, kind }: Part, i: number) {
  if (kind === 'same') return text
  return kind === 'ins' ? <ins key={i}>{text}</ins> : <del key={i}>{text}</del>
}

// The log keeps the original, byte for byte.
function Original({ base, row }: { base: string; row: Change }) {
  const [text, setText] = useState<string>()
  if (row.turn === undefined) return null
  const load = async () => {
    try {
      const answer = await request<Recall>(`${base}/recall?turn=${row.turn}&index=${row.index ?? 0}`)
      setText(JSON.stringify(answer.messages?.length === 1 ? answer.messages[0] : answer.messages, null, 2))
    } catch (err) {
      setText(err instanceof Error ? err.message : String(err))
    }
  }
  if (text === undefined) return <button type="button" class="button plain small" onClick={load}>Recall the original</button>
  return <Text text={text} />
}
