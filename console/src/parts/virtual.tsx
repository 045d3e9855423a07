// A list of which only the rows in view are in the document.
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

interface Props<T> {
  items: T[]
  rowHeight: number
  label: string
  className?: string
  keyOf(item: T): string
  row(item: T, index: number): ComponentChildren
  head?: ComponentChildren
  /** Called when the last rows come into view. */
  onEnd?: () => void
}

const over = 8 // rows beyond each edge

export function Virtual<T>({ items, rowHeight, label, className = '', keyOf, row, head, onEnd }: Props<T>) {
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 800 })

  useLayoutEffect(() => {
    const el = box.current
    if (!el) return
    const measure = () => setView({ top: el.scrollTop, height: el.clientHeight })
    const place = () => {
      el.style.setProperty('--above', `${Math.min(el.getBoundingClientRect().top + scrollY, 420) + 24}px`)
      measure()
    }
    const sizes = new ResizeObserver(place)
    sizes.observe(el)
    sizes.observe(document.body)
    el.addEventListener('scroll', measure, { passive: true })
    place()
    return () => {
      sizes.disconnect()
      el.removeEventListener('scroll', measure)
    }
  }, [])

  const first = Math.max(0, Math.floor(view.top / rowHeight) - over)
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + over)
  useEffect(() => {
    if (last >= items.length && items.length > 0) onEnd?.()
  }, [last, items.length, onEnd])

  // Arrow keys, Home and End move the focus from row to row; a row that is not in the document yet
  // is scrolled to first.
  const go = (to: number) => {
    const el = box.current
    const index = Math.max(0, Math.min(items.length - 1, to))
    if (!el || !items.length) return
    const top = index * rowHeight
    if (top < el.scrollTop) el.scrollTop = top
    else if (top + rowHeight > el.scrollTop + el.clientHeight) el.scrollTop = top + rowHeight - el.clientHeight
    setView({ top: el.scrollTop, height: el.clientHeight })
    requestAnimationFrame(() => el.querySelector<HTMLElement>(`[data-index="${index}"] a`)?.focus({ preventScroll: true }))
  }
  const onKeyDown = (e: KeyboardEvent) => {
    const at = (e.target as HTMLElement).closest<HTMLElement>('[data-index]')?.dataset.index
    if (at === undefined || e.altKey || e.ctrlKey || e.metaKey) return
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 1)
    const to = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -items.length, End: items.length }[e.key]
    if (to === undefined) return
    e.preventDefault()
    go(Number(at) + to)
  }

  return (
    <div role="table" aria-label={label} aria-rowcount={items.length + 1} class={className}>
      {head && <div role="rowgroup">{head}</div>}
      <div role="rowgroup" class="rows" ref={box} onKeyDown={onKeyDown} tabIndex={-1}>
        <div role="presentation" class="spacer" style={{ height: `${items.length * rowHeight}px` }}>
          {items.slice(first, last).map((item, i) => (
            <div role="row" class="row" key={keyOf(item)} data-index={first + i} aria-rowindex={first + i + 2} style={{ top: `${(first + i) * rowHeight}px`, height: `${rowHeight}px` }}>
              {row(item, first + i)}
            </div>
          ))}
        </div>
      </div>
    </div>
  )
}
