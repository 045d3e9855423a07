// Numbers, times and names of the wire as a person reads them.

const whole = new Intl.NumberFormat('en-US')
const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 })

/** 10,589 */
export const count = (n: number | undefined): string => (n === undefined ? '–' : whole.format(n).replace('-', '−'))

/** 10.6K */
export const brief = (n: number | undefined): string => (n === undefined ? '–' : short.format(n))

/** "1 turn", "2 turns" */
export const some = (n: number, noun: string): string => `${whole.format(n)} ${noun}${n === 1 ? '' : 's'}`

/** Parts per million of the available input as a percentage, without decimals above 10. */
export function percent(ratio: number): string {
  const p = ratio * 100
  if (!Number.isFinite(p)) return '–'
  return `${p > 0 && p < 10 ? p.toFixed(1) : Math.round(p)} %`.replace('-', '−')
}

/** Billionths of a US dollar. */
export function money(nano: number | undefined): string {
  if (nano === undefined) return '–'
  const dollars = nano / 1e9
  const size = Math.abs(dollars)
  const digits = size === 0 || size >= 1 ? 2 : size >= 0.01 ? 3 : 4
  const sign = dollars < 0 ? '−' : ''
  return `${sign}$${size.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })}`
}

const units: [string, number][] = [['B', 1], ['KiB', 1 << 10], ['MiB', 1 << 20], ['GiB', 1 << 30], ['TiB', 2 ** 40]]

/** 1.5 MiB */
export function bytes(n: number | undefined): string {
  if (n === undefined) return '–'
  const [unit, size] = units.findLast(([, size]) => n >= size) ?? units[0]!
  return `${size === 1 ? n : (n / size).toFixed(n / size < 10 ? 1 : 0)} ${unit}`
}

/** A length of time in seconds: 0.2 s, 45 s, 12 min, 3 h, 2 d. */
export function span(seconds: number | undefined): string {
  if (seconds === undefined || seconds < 0 || !Number.isFinite(seconds)) return '–'
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86400)} d`
}

/** Unix milliseconds as a time ago. */
export function ago(ms: number | undefined, now = Date.now()): string {
  if (!ms) return '–'
  const seconds = Math.max(0, (now - ms) / 1000)
  return seconds < 2 ? 'now' : `${span(Math.round(seconds)).replace('.0', '')} ago`
}

/** Unix milliseconds as a day and a time: 28 Nov, 10:42:07, with the year when it is another one. */
export function clock(ms: number | undefined): string {
  if (!ms) return '–'
  const at = new Date(ms)
  const year = at.getFullYear() === new Date().getFullYear() ? {} : { year: 'numeric' as const }
  return `${at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', ...year })}, ${at.toLocaleTimeString('en-GB')}`
}

/** At most n characters of a text, which may hold megabytes. */
export const cut = (text: string, n: number): string => (text.length > n ? `${text.slice(0, n)}…` : text)

/** The first line of a text, for a row. */
export function gist(text: string, n: number): string {
  return cut(text.slice(0, n * 4).replace(/\s+/g, ' ').trim(), n)
}
