import { useEffect, useState } from 'preact/hooks'

/** Whether a media query holds, such as (max-width: 700px). */
export function useMedia(text: string): boolean {
  const [holds, set] = useState(() => matchMedia(text).matches)
  useEffect(() => {
    const query = matchMedia(text)
    const changed = () => set(query.matches)
    changed()
    query.addEventListener('change', changed)
    return () => query.removeEventListener('change', changed)
  }, [text])
  return holds
}
