// How full a session is: the input over the available input, with threshold and target marked.
import { count, percent } from '../format'

interface Props {
  tokens: number
  available: number
  threshold?: number | undefined
  target?: number | undefined
}

export function Fill({ tokens, available, threshold, target }: Props) {
  const of = (n: number) => `${Math.min(100, (n / (available || 1)) * 100)}%`
  const state = tokens >= available && available ? 'bad' : threshold && tokens >= threshold ? 'warn' : ''
  const label = `${percent(tokens / available)} of the available input: ${count(tokens)} of ${count(available)} tokens` + (threshold ? `, threshold ${count(threshold)}` : '') + (target ? `, target ${count(target)}` : '')
  return (
    <div class={`fill ${state}`} role="img" aria-label={label} title={label}>
      <i style={{ width: of(tokens) }} />
      {target ? <b class="target" style={{ left: of(target) }} /> : null}
      {threshold ? <b style={{ left: of(threshold) }} /> : null}
    </div>
  )
}

/** What the marks of a bar are. */
export function FillKey({ threshold, target }: { threshold?: number | undefined; target?: number | undefined }) {
  const text = (name: string, tokens: number | undefined) => (tokens ? `${name} ${count(tokens)}` : name)
  return (
    <span class="fill-key small muted">
      <span><i class="target" aria-hidden="true" />{text('target', target)}</span> <span><i aria-hidden="true" />{text('threshold', threshold)}</span>
    </span>
  )
}
