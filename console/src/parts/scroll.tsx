// A part that scrolls sideways where its window is narrow; the keyboard reaches it only then.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null)
  const [wide, setWide] = useState(false)
  useEffect(() => {
    const el = box.current
    if (!el) return
    const sizes = new ResizeObserver(() => setWide(el.scrollWidth > el.clientWidth))
    sizes.observe(el)
    if (el.firstElementChild) sizes.observe(el.firstElementChild)
    return () => sizes.disconnect()
  }, [])
  return <div class="scroll" ref={box} {...(wide ? { tabIndex: 0, role: 'group', 'aria-label': label } : {})}>{children}</div>
}
