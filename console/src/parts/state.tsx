// A view's answer, or why there is none.
import type { ComponentChildren } from 'preact'
import type { Resource } from '../resource'

interface Props<T> {
  of: Resource<T>
  children: (data: T) => ComponentChildren
}

export function Loaded<T>({ of, children }: Props<T>) {
  if (of.data !== undefined) {
    return (
      <>
        {of.error && <p class="outcome bad" role="status">{of.error.message} This is the last answer.</p>}
        {children(of.data)}
      </>
    )
  }
  if (of.error?.code === 'not_found') return <Nothing title="This worker does not serve this view.">Its version is older than this page.</Nothing>
  if (of.error) return <Nothing title={of.error.message}>{of.error.hint}</Nothing>
  return <div class="empty" role="status">Loading…</div>
}

export function Nothing({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  )
}
