// How full a window is: the input over what is available, with the trigger and the target marked.
import { count, percent } from '../format'

interface Props {
  tokens: number
  available: number
  trigger?: number | undefined
  target?: number | undefined
}

export function Fill({ tokens, available, trigger, target }: Props) {
  const of = (n: number) => `${Math.min(100, (n / (available || 1)) * 100)}%`
  const state = tokens >= available && available ? 'bad' : trigger && tokens >= trigger ? 'warn' : ''
  const label = `${percent(tokens / available)} full: ${count(tokens)} of ${count(available)} tokens` + (trigger ? `, compaction at ${count(trigger)}` : '')
  return (
    <div class={`fill ${state}`} role="img" aria-label={label} title={label}>
      <i style={{ width: of(tokens) }} />
      {target ? <b class="target" style={{ left: of(target) }} /> : null}
      {trigger ? <b style={{ left: of(trigger) }} /> : null}
    </div>
  )
}
