// Tenants: sessions, tokens, money, quota and quality, the largest first.
import { useState } from 'preact/hooks'
import { ago, brief, bytes, count, money, percent, some } from '../format'
import { Scroll } from '../parts/scroll'
import { Loaded, Nothing } from '../parts/state'
import { useResource } from '../resource'
import { link, replaceQuery, useRoute } from '../route'
import type { TenantList, TenantRow } from '../types'

const columns: [string, string, boolean][] = [
  ['name', 'Tenant', false], ['sessions', 'Sessions', true], ['input', 'Tokens', true], ['saved', 'Tokens saved', true], ['', 'Money saved', true], ['lost', 'Lost on caches', true],
  ['summaries', 'Summaries', true], ['', 'Outcomes of the hour', false], ['rejected', 'Refused', true], ['', 'Read again', true], ['last_turn', 'Last turn', true],
]

export function TenantsView() {
  const { query } = useRoute()
  const sort = query.get('sort') ?? 'input'
  const text = query.get('text') ?? ''
  const search = new URLSearchParams({ sort, limit: '500' })
  if (text) search.set('text', text)
  const list = useResource<TenantList>(`/v1/tenants?${search}`, { every: 5000, concerns: () => true })
  return (
    <Loaded of={list}>
      {(data) => (
        <>
          <div class="head">
            <div><h1>Tenants</h1><p class="muted">{some(data.total ?? data.tenants?.length ?? 0, 'tenant')}{data.missing?.length ? `. Without partition ${data.missing.join(', ')}, which no worker serves now.` : ''}</p></div>
            <label class="field"><span>Search a tenant</span><input class="input" type="search" value={text} onInput={(e) => replaceQuery({ text: e.currentTarget.value })} /></label>
          </div>
          <Totals of={data.tenants ?? []} />
          <Table of={data} sort={sort} />
        </>
      )}
    </Loaded>
  )
}

const sum = <T,>(all: T[], value: (of: T) => number | undefined): number => all.reduce((n, one) => n + (value(one) ?? 0), 0)

function Totals({ of }: { of: TenantRow[] }) {
  const prepared = sum(of, (t) => t.prepared)
  const waiting = sum(of, (t) => t.waiting)
  const saved = sum(of, (t) => t.cost?.saved_nano_usd)
  return (
    <dl class="facts">
      <div><dt>Sessions</dt><dd>{count(sum(of, (t) => t.sessions))}</dd></div>
      <div><dt>Tokens in windows</dt><dd>{brief(sum(of, (t) => t.input_tokens))}</dd></div>
      <div><dt>Tokens saved</dt><dd>{brief(sum(of, (t) => t.saved_tokens))}</dd></div>
      <div><dt>Money saved</dt><dd>{money(saved)} <small>at list prices</small></dd></div>
      <div><dt>Lost on caches</dt><dd>{money(sum(of, (t) => t.cost?.lost_nano_usd))}</dd></div>
      <div><dt>Spent on summaries</dt><dd>{money(sum(of, (t) => t.cost?.summaries_nano_usd))}</dd></div>
      <div><dt>Summaries ready</dt><dd>{count(prepared)} <small>{waiting ? `${count(waiting)} under way` : ''}</small></dd></div>
      <div><dt>Events refused</dt><dd>{count(sum(of, (t) => t.rejected))}</dd></div>
    </dl>
  )
}

function Table({ of, sort }: { of: TenantList; sort: string }) {
  const [open, setOpen] = useState<string>()
  const tenants = of.tenants ?? []
  if (!tenants.length) return <div class="card"><Nothing title="No tenant has a session.">An agent begins one with its first turn.</Nothing></div>
  const largest = Math.max(1, ...tenants.map((t) => t.input_tokens ?? 0))
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
        <td class="num">{count(of.input_tokens ?? 0)}<div class="fill thin" aria-hidden="true"><i style={{ width: `${((of.input_tokens ?? 0) / largest) * 100}%` }} /></div></td>
        <td class="num">{count(of.saved_tokens ?? 0)}</td>
        <td class="num">{money(of.cost?.saved_nano_usd)}</td><td class="num">{money(of.cost?.lost_nano_usd)}</td><td class="num">{money(of.cost?.summaries_nano_usd)}</td>
        <td class="nowrap">{share === undefined ? bytes(of.outcome_bytes_hour ?? 0) : <span class={share >= 0.8 ? 'tag warn' : ''}>{bytes(of.outcome_bytes_hour ?? 0)}, {percent(share)}</span>}</td>
        <td class="num">{count(of.rejected ?? 0)}</td><td class="num">{count((of.rereads ?? 0) + (of.reruns ?? 0))}</td><td class="num muted nowrap">{ago(of.last_turn_ms)}</td>
      </tr>
      {open && of.models?.map((m) => (
        <tr class="sub" key={m.model}>
          <td class="muted"><bdi>{m.model || 'no model'}</bdi></td><td class="num">{count(m.sessions ?? 0)}</td><td class="num">{count(m.input_tokens ?? 0)}</td><td class="num">{count(m.saved_tokens ?? 0)}</td>
          <td class="num">{money(m.cost?.saved_nano_usd)}</td><td class="num">{money(m.cost?.lost_nano_usd)}</td><td class="num">{money(m.cost?.summaries_nano_usd)}</td><td colSpan={4} />
        </tr>
      ))}
    </>
  )
}
