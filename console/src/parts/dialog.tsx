// A question before an action: what will happen, and two buttons.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Refusal } from '../api'

interface Props {
  title: string
  confirm: string
  danger?: boolean
  children: ComponentChildren
  /** Does it, and returns what happened. */
  act(): Promise<string>
  close(): void
}

export function Confirm({ title, confirm, danger, children, act, close }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [busy, setBusy] = useState(false)
  const [done, setDone] = useState<{ good: boolean; text: string }>()

  useEffect(() => {
    const before = document.activeElement as HTMLElement | null
    dialog.current?.showModal()
    return () => before?.focus()
  }, [])

  const submit = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    setDone(undefined)
    try {
      setDone({ good: true, text: await act() })
    } catch (err) {
      const text = err instanceof Refusal ? `${err.message} ${err.hint}`.trim() : err instanceof Error ? err.message : String(err)
      setDone({ good: false, text })
    } finally {
      setBusy(false)
    }
  }

  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onClose={close}>
      <form onSubmit={submit}>
        <h2 id="dialog-title">{title}</h2>
        {!done?.good && children}
        <div role="status" aria-live="polite">{done && <p class={`outcome ${done.good ? 'good' : 'bad'}`}>{done.text}</p>}</div>
        <div class="actions">
          <button type="button" class="button" onClick={() => dialog.current?.close()}>{done?.good ? 'Close' : 'Cancel'}</button>
          {!done?.good && (
            <button type="submit" class={`button ${danger ? 'danger' : 'primary'}`} disabled={busy}>{busy ? 'Working…' : confirm}</button>
          )}
        </div>
      </form>
    </dialog>
  )
}
