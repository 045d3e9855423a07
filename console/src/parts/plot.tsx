// A plot in uPlot, in the colours of the page, with labelled lines across it.
import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { brief } from '../format'

export interface Line { label: string; colour: string; dash?: number[]; fill?: boolean; stepped?: boolean }

/** A level across the plot, such as the threshold. */
export interface Level { label: string; value: number; colour: string; dash?: number[] }

/** A place along the x axis, such as a generation, with the fall of the line there. */
export interface Mark { x: number; from?: number | undefined; to?: number | undefined; chosen: boolean }

interface Props {
  label: string
  height: number
  x: number[]
  lines: { line: Line; values: (number | null)[] }[]
  levels?: Level[]
  marks?: Mark[]
  onHover?(index: number | undefined): void
  onMark?(index: number): void
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || '#888'
}

// Counts the changes between light and dark, since a canvas does not follow them by itself.
function useScheme(): number {
  const [changes, set] = useState(0)
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)')
    const changed = () => set((n) => n + 1)
    query.addEventListener('change', changed)
    return () => query.removeEventListener('change', changed)
  }, [])
  return changes
}

export function Plot(props: Props) {
  const box = useRef<HTMLDivElement>(null)
  const now = useRef(props)
  now.current = props
  const plot = useRef<uPlot | undefined>(undefined)
  const scheme = useScheme()
  const shape = props.lines.map(({ line }) => line.label).join('|') + scheme

  useEffect(() => {
    const el = box.current
    if (!el) return
    const u = new uPlot(options(now, el.clientWidth), data(now.current), el)
    plot.current = u
    const sizes = new ResizeObserver(() => u.setSize({ width: el.clientWidth, height: now.current.height }))
    sizes.observe(el)
    return () => {
      sizes.disconnect()
      u.destroy()
    }
  }, [shape])

  useEffect(() => plot.current?.setData(data(props)), [props.x, props.lines, props.levels, props.marks])

  return <div class="plot" role="img" aria-label={props.label} ref={box} style={{ minHeight: `${props.height}px` }} />
}

const data = (p: Props): uPlot.AlignedData => [p.x, ...p.lines.map(({ values }) => values)] as uPlot.AlignedData

const font = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'

function options(now: { current: Props }, width: number): uPlot.Options {
  const axis: uPlot.Axis = {
    stroke: colour('--muted'), font, grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false },
  }
  return {
    width,
    height: now.current.height,
    padding: [10, now.current.levels?.length ? 104 : 16, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false } },
    scales: {
      x: { time: false },
      y: {
        range: (_u, _min, max) => {
          const top = Math.max(max ?? 0, ...(now.current.levels ?? []).map((l) => l.value), 1)
          return [0, top * 1.06]
        },
      },
    },
    axes: [
      { ...axis, size: 30, grid: { show: false }, values: (_u, ticks) => ticks.map((t) => (Number.isInteger(t) ? String(t) : '')) },
      { ...axis, size: 52, values: (_u, ticks) => ticks.map((t) => brief(t)) },
    ],
    series: [
      {},
      ...now.current.lines.map(({ line }): uPlot.Series => ({
        label: line.label,
        stroke: colour(line.colour),
        width: line.fill ? 2 : 1.5,
        points: { show: false },
        ...(line.dash ? { dash: line.dash } : {}),
        ...(line.fill ? { fill: `color-mix(in srgb, ${colour(line.colour)} 12%, transparent)` } : {}),
        ...(line.stepped && uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}),
      })),
    ],
    hooks: {
      drawClear: [(u) => drawMarks(u, now.current.marks ?? [])],
      draw: [(u) => drawLevels(u, now.current.levels ?? [])],
      setCursor: [(u) => now.current.onHover?.(u.cursor.idx ?? undefined)],
      ready: [
        (u) =>
          u.over.addEventListener('click', (e) => {
            const marks = now.current.marks ?? []
            const near = nearest(marks.map((m) => u.valToPos(m.x, 'x')), e.offsetX)
            if (near !== undefined) now.current.onMark?.(near)
          }),
      ],
    },
  }
}

function nearest(places: number[], x: number): number | undefined {
  let best: number | undefined
  places.forEach((place, i) => {
    if (best === undefined || Math.abs(place - x) < Math.abs(places[best]! - x)) best = i
  })
  return best
}

function drawMarks(u: uPlot, marks: Mark[]): void {
  const { ctx, bbox } = u
  const ratio = devicePixelRatio
  ctx.save()
  for (const mark of marks) {
    const x = Math.round(u.valToPos(mark.x, 'x', true))
    if (x < bbox.left || x > bbox.left + bbox.width) continue
    ctx.strokeStyle = colour(mark.chosen ? '--accent' : '--edge')
    ctx.lineWidth = (mark.chosen ? 2 : 1) * ratio
    ctx.globalAlpha = mark.chosen ? 1 : 0.55
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
    if (mark.from === undefined || mark.to === undefined) continue
    ctx.strokeStyle = colour('--accent')
    ctx.globalAlpha = 1
    ctx.lineWidth = 3 * ratio
    ctx.beginPath()
    ctx.moveTo(x, u.valToPos(mark.from, 'y', true))
    ctx.lineTo(x, u.valToPos(mark.to, 'y', true))
    ctx.stroke()
  }
  ctx.restore()
}

// Labels stand in the margin at the right, each beside its line, and apart from each other.
function drawLevels(u: uPlot, levels: Level[]): void {
  const { ctx, bbox } = u
  const ratio = devicePixelRatio
  ctx.save()
  ctx.font = font.replace('12px', `${12 * ratio}px`)
  ctx.textAlign = 'left'
  ctx.textBaseline = 'middle'
  let lowest = -Infinity
  for (const level of [...levels].sort((a, b) => b.value - a.value)) {
    const y = Math.round(u.valToPos(level.value, 'y', true))
    ctx.strokeStyle = ctx.fillStyle = colour(level.colour)
    ctx.lineWidth = 1.25 * ratio
    ctx.setLineDash((level.dash ?? []).map((d) => d * ratio))
    ctx.beginPath()
    ctx.moveTo(bbox.left, y)
    ctx.lineTo(bbox.left + bbox.width, y)
    ctx.stroke()
    const at = Math.max(y, lowest + 15 * ratio)
    lowest = at
    ctx.fillText(`${level.label} ${brief(level.value)}`, bbox.left + bbox.width + 8 * ratio, at)
  }
  ctx.restore()
}
