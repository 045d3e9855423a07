// Tenants: sessions, tokens, money, quota and quality, the one that spends most first.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { ago, brief, bytes, count, money, percent, some } from '../format'
import { atLeast, netParts, netText, spent, spentText, together } from '../money'
import { Scroll } from '../parts/scroll'
import { Search } from '../parts/search'
import { Loaded, Nothing } from '../parts/state'
import { useResource } from '../resource'
import { link, replaceQuery, useRoute } from '../route'
import type { Cost, SummaryCounts, TenantList, TenantRow } from '../types'

// What each is sorted by on the worker, its name, and whether it is a number.
const columns: [string, string, boolean][] = [
  ['name', 'Tenant', false], ['sessions', 'Sessions', true], ['input', 'Tokens', true], ['spent', 'Spent', true], ['', 'Saved', true], ['lost', '− Lost', true],
  ['summaries', '− Summaries', true], ['', '= Net saving', true], ['', 'Prepared', true], ['', 'Outcomes, hour', false], ['rejected', 'Refused', true], ['', 'Read again', true], ['last_turn', 'Last turn', true],
]

export function TenantsView() {
  const { query } = useRoute()
  const sort = query.get('sort') ?? 'spent'
  const text = query.get('text') ?? ''
  const search = new URLSearchParams({ sort, limit: '500' })
  if (text) search.set('text', text)
  const list = useResource<TenantList>(`/v1/tenants?${search}`, { every: 5000, concerns: () => true })
  return (
    <>
      <div class="head">
        <div><h1>Tenants</h1><p class="muted" role="status">{list.data && summary(list.data)}</p></div>
        <Search label="Search a tenant" text={text} />
      </div>
      <Loaded of={list}>
        {(data) => (
          <>
            <Totals of={data.tenants ?? []} />
            <Table of={data} sort={sort} />
          </>
        )}
      </Loaded>
    </>
  )
}

function summary({ tenants = [], total = tenants.length, missing = [] }: TenantList): string {
  const shown = total > tenants.length ? `${some(total, 'tenant')}; the table and the sums have the first ${count(tenants.length)}` : some(total, 'tenant')
  return shown + (missing.length ? `. Without partition ${missing.join(', ')}, which no worker serves now.` : '')
}

const sum = <T,>(all: T[], value: (of: T) => number | undefined): number => all.reduce((n, one) => n + (value(one) ?? 0), 0)

// The share of the summaries that were there when a compaction needed them.
function prepared(all: (SummaryCounts | undefined)[]): { share: number | undefined; failed: number } {
  const ready = sum(all, (s) => s?.ready)
  const failed = sum(all, (s) => s?.failed)
  const needed = ready + failed + sum(all, (s) => s?.late)
  return { share: needed ? ready / needed : undefined, failed }
}

function Totals({ of }: { of: TenantRow[] }) {
  const waiting = sum(of, (t) => t.waiting)
  const cost = together(of.map((t) => t.cost))
  const { share, failed } = prepared(of.map((t) => t.summaries))
  return (
    <dl class="facts">
      <div><dt>Spent on input and summaries</dt><dd>{spentText(cost, of.length)} <small>at list prices</small></dd></div>
      <div class="fact-wide"><dt>Net saving, expected</dt><dd>{netText(cost)} <small>{netParts(cost)}</small></dd></div>
      <div><dt>Sessions</dt><dd>{count(sum(of, (t) => t.sessions))}</dd></div>
      <div><dt>Tokens of the next calls</dt><dd>{brief(sum(of, (t) => t.input_tokens))} <small>{brief(sum(of, (t) => t.saved_tokens))} saved</small></dd></div>
      <div><dt>Summaries prepared in time</dt><dd>{share === undefined ? '–' : percent(share)} <small>{failed ? `${count(failed)} failed` : ''}{waiting ? ` ${count(waiting)} under way` : ''}</small></dd></div>
      <div><dt>Events refused</dt><dd>{count(sum(of, (t) => t.rejected))}</dd></div>
    </dl>
  )
}

function Table({ of, sort }: { of: TenantList; sort: string }) {
  const [open, setOpen] = useState<string>()
  const tenants = of.tenants ?? []
  if (!tenants.length) return <div class="card"><Nothing title="No tenant has a session.">An agent begins one with its first turn.</Nothing></div>
  const largest = Math.max(1, ...tenants.map((t) => spent(t.cost)))
  return (
    <section class="card" aria-label="Tenants">
      <Scroll label="Tenants">
        <table>
          <thead>
            <tr>
              {columns.map(([by, text, num]) => (
                <th scope="col" class={num ? 'num' : undefined} aria-sort={by && by === sort ? (by === 'name' ? 'ascending' : 'descending') : undefined} key={text}>
                  {by ? <button type="button" onClick={() => replaceQuery({ sort: by })}>{text}{by === sort && <span aria-hidden="true"> {by === 'name' ? '↑' : '↓'}</span>}</button> : text}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {tenants.map((t) => <Tenant of={t} largest={largest} open={open === t.tenant} toggle={() => setOpen(open === t.tenant ? undefined : t.tenant)} key={t.tenant} />)}
          </tbody>
        </table>
      </Scroll>
    </section>
  )
}

function Tenant({ of, largest, open, toggle }: { of: TenantRow; largest: number; open: boolean; toggle(): void }) {
  const share = of.outcome_bytes_bound ? (of.outcome_bytes_hour ?? 0) / of.outcome_bytes_bound : undefined
  return (
    <>
      <tr>
        <td>
          <a href={link(['sessions'], { tenant: of.tenant })}><bdi>{of.tenant}</bdi></a>
          {of.models && of.models.length > 0 && <div><button type="button" class="button plain small" aria-expanded={open} onClick={toggle}>{open ? 'Hide' : 'Show'} {some(of.models.length, 'model')}</button></div>}
        </td>
        <td class="num">{count(of.sessions ?? 0)}</td>
        <td class="num">{count(of.input_tokens ?? 0)}</td>
        <Money of={of.cost} tokens={of.input_tokens}><div class="fill thin" aria-hidden="true"><i style={{ width: `${(spent(of.cost) / largest) * 100}%` }} /></div></Money>
        <Prepared of={of.summaries} />
        <td class="nowrap">{share === undefined ? bytes(of.outcome_bytes_hour ?? 0) : <span class={share >= 0.8 ? 'tag warn' : ''}>{bytes(of.outcome_bytes_hour ?? 0)}, {percent(share)}</span>}</td>
        <td class="num">{count(of.rejected ?? 0)}</td><td class="num">{count((of.rereads ?? 0) + (of.reruns ?? 0))}</td><td class="num muted nowrap">{ago(of.last_turn_ms)}</td>
      </tr>
      {open && of.models?.map((m) => (
        <tr class="sub" key={m.model ?? ''}>
          <td class="muted"><bdi>{m.model || 'unknown model'}</bdi></td><td class="num">{count(m.sessions ?? 0)}</td><td class="num">{count(m.input_tokens ?? 0)}</td>
          <Money of={m.cost} tokens={m.input_tokens} />
          <Prepared of={m.summaries} /><td colSpan={4} />
        </tr>
      ))}
    </>
  )
}

// The cells of money: what was spent, and what compactions saved less what they cost.
function Money({ of, tokens, children }: { of: Cost | undefined; tokens: number | undefined; children?: ComponentChildren }) {
  return (
    <>
      <td class="num">{spentText(of, tokens)}{children}</td>
      <td class="num">{atLeast(of?.saved_nano_usd, of?.unpriced)}</td><td class="num">{money(of?.lost_nano_usd)}</td><td class="num">{money(of?.summaries_nano_usd)}</td>
      <td class="num"><b>{netText(of)}</b></td>
    </>
  )
}

function Prepared({ of }: { of: SummaryCounts | undefined }) {
  const { share, failed } = prepared([of])
  return <td class="num">{share === undefined ? '–' : percent(share)}{failed > 0 && <div class="small muted">{count(failed)} failed</div>}</td>
}
