// A field for a text to look for, which is in the address of the view.
import { useEffect, useRef, useState } from 'preact/hooks'
import { replaceQuery } from '../route'

export function Search({ label, text }: { label: string; text: string }) {
  const [typed, setTyped] = useState(text)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => setTyped(text), [text])
  useEffect(() => () => clearTimeout(timer.current), [])
  const search = (value: string, after: number) => {
    setTyped(value)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => replaceQuery({ text: value }), after)
  }
  return (
    <label class="field grow">
      <span>{label}</span>
      <input class="input" type="search" value={typed} onInput={(e) => search(e.currentTarget.value, 250)} onChange={(e) => search(e.currentTarget.value, 0)} />
    </label>
  )
}
