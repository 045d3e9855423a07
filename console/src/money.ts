// Costs of calls and savings of compactions, in words that say of which. Amounts without a price are in no sum.
import { money } from './format'
import type { Cost } from './types'

/** Money for input and summaries. */
export const spent = (cost: Cost | undefined): number => (cost?.input_nano_usd ?? 0) + (cost?.summaries_nano_usd ?? 0)

/** The savings of compactions, less their costs. */
export const net = (cost: Cost | undefined): number => (cost?.saved_nano_usd ?? 0) - (cost?.lost_nano_usd ?? 0) - (cost?.summaries_nano_usd ?? 0)

/** An amount of which some has no price: then it is a lower bound. */
export function atLeast(nano: number | undefined, unpriced: number | undefined): string {
  if (!unpriced) return money(nano ?? 0)
  return nano ? `at least ${money(nano)}` : 'unknown'
}

/** Calls of a model without a price cost an unknown amount, not nothing. */
export function spentText(cost: Cost | undefined, calls: number | undefined): string {
  return spent(cost) === 0 && calls ? 'unknown' : atLeast(spent(cost), cost?.unpriced)
}

export const netText = (cost: Cost | undefined): string => (cost?.unpriced && !net(cost) ? 'unknown' : money(net(cost)))

export function netParts(cost: Cost | undefined): string {
  const parts: [number | undefined, string][] = [[cost?.saved_nano_usd, 'saved'], [cost?.lost_nano_usd, 'lost on caches'], [cost?.summaries_nano_usd, 'for summaries']]
  return parts.flatMap(([nano, name]) => (nano ? [`${money(nano)} ${name}`] : [])).join(', ')
}

/** The sum over many. */
export function together(all: (Cost | undefined)[]): Cost {
  const sum: Required<Cost> = { input_nano_usd: 0, lost_nano_usd: 0, saved_nano_usd: 0, summaries_nano_usd: 0, unpriced: 0 }
  for (const cost of all) for (const name of Object.keys(sum) as (keyof Cost)[]) sum[name] += cost?.[name] ?? 0
  return sum
}
