// The answers of the worker that the views read; /v1/openapi.json describes them whole. A field
// that is absent on the wire when it is zero is optional here.

export interface Through { turn?: number; seq?: number }

/** Billionths of a dollar. Saved is before lost and summaries are taken off; unpriced counts what has no price and is in no amount. */
export interface Cost { input_nano_usd?: number; lost_nano_usd?: number; saved_nano_usd?: number; summaries_nano_usd?: number; unpriced?: number }

export interface Health { status: string; partitions: number; served: number; version: string; owner: string; config: string }

export interface Fleet {
  time_ms: number
  partitions: PartitionRow[]
  workers: WorkerRow[]
  lanes?: { lane: string; waiting?: number; running?: number }[]
  models?: { owner: string; model: string; circuit: string }[]
  feed?: { time_ms: number; owner: string; partition?: number; kind: string; text: string }[]
}

export interface PartitionRow {
  partition: number
  owner?: string
  leased?: boolean
  epoch?: number
  cursor?: number
  behind?: number
  lag_ms?: number
  lease_age_ms?: number
  served?: boolean
  acquired_ms?: number
  sessions?: number
  checkpoint_ms?: number
  snapshot_ms?: number
  snapshot_bytes?: number
  commits?: Commits
}

/** Commits of the last minute, in microseconds. */
export interface Commits { count?: number; p50_us?: number; p99_us?: number; longest_us?: number }

export interface WorkerRow {
  owner: string
  name?: string
  version?: string
  config?: string
  http?: string
  partitions?: number
  lag_ms?: number
  commits?: Commits
  status?: string
  started_ms?: number
  cpu_ms?: number
  cpus?: number
  memory_bytes?: number
  memory_limit_bytes?: number
  answered?: boolean
}

export interface SessionRow {
  tenant: string
  session: string
  name?: string
  turns?: number
  estimated_input_tokens?: number
  available_input_tokens?: number
  level?: string
  generation?: number
  last_turn_ms?: number
  rereads?: number
  reruns?: number
  cost?: Cost
  provider?: string
  model?: string
  context_window?: number
  trigger_tokens?: number
  target_tokens?: number
  limit_tokens?: number
  growth_tokens?: number
  turns_left?: number
  prepared?: boolean
  waiting?: boolean
  reason?: string
  saved_tokens?: number
}

export interface SessionList {
  sessions?: SessionRow[]
  after?: string
  total?: number
  matched?: number
  levels?: Record<string, number>
  missing?: number[]
}

export interface Budget {
  level: string
  context_window: number
  output_reserve: number
  available_input_tokens: number
  estimated_input_tokens: number
  usage_ppm: number
  percent_left: number
  trigger_tokens: number
  target_tokens: number
  limit_tokens: number
  generation: number
}

export interface Stats {
  known: boolean
  name?: string
  turns?: number
  messages?: number
  generation?: number
  through?: Through
  parked?: number
  prepared?: boolean
  waiting?: boolean
  needs_compaction?: boolean
  rereads?: number
  reruns?: number
  cost?: Cost
  budget?: Budget
}

export interface Stage { name: string; tokens_before: number; tokens_after: number; edits: number }

export interface Compaction {
  time_ms: number
  id: string
  generation: number
  compacted: boolean
  code?: string
  reason: string
  config: string
  caused_by: { seq: number; id?: string }
  request?: { seq: number; id?: string }
  rewound_to?: number
  through: Through
  stages_used?: string[]
  stages?: Stage[]
  tokens_before: number
  tokens_after: number
  available_input_tokens: number
  messages?: number
  summary_model?: string
  level?: string
  trace?: string
}

export interface History { known: boolean; generation?: number; entries?: Compaction[]; older?: number }

export interface Timeline {
  known: boolean
  generation?: number
  through?: Through
  provider?: string
  model?: string
  format?: string
  context_window?: number
  available_input_tokens?: number
  trigger_tokens?: number
  target_tokens?: number
  limit_tokens?: number
  input_tokens?: number
  turns?: { turn: number; seq: number; added_tokens?: number; input_tokens?: number; published_tokens?: number }[]
  generations?: { generation: number; turn: number; from?: number; tokens_before?: number; tokens_after?: number; saved_tokens?: number; reason?: string }[]
}

export interface Change {
  action: 'kept' | 'changed' | 'removed' | 'added'
  op?: string
  turn?: number
  index?: number
  role?: string
  tokens_before?: number
  tokens_after?: number
  before?: string
  after?: string
  cut?: boolean
}

export interface RecordLine { kind: string; text: string; turns?: [number, number] }

export interface Changes {
  known: boolean
  generation?: number
  from?: number
  through_turn?: number
  tokens_before?: number
  tokens_after?: number
  rows?: Change[]
  summary?: { model?: string; text?: string; record?: RecordLine[]; turns?: [number, number] }
  page?: number
  pages?: number
}

export interface Recall { known: boolean; turn?: number; index?: number; messages?: unknown[]; page?: number; pages?: number }

export interface Context { known: boolean; format?: string; system?: unknown; tools?: unknown; messages?: unknown[]; generation?: number; through?: Through; page?: number; pages?: number }

export interface XrayKind { kind: string; name?: string; tokens: number; count?: number }

export interface Xray {
  known: boolean
  generation?: number
  available_input_tokens?: number
  input_tokens?: number
  kinds?: XrayKind[]
  largest?: { kind: string; name?: string; turn?: number; index?: number; tokens: number; excerpt?: string }[]
  valid?: boolean
  violations?: { rule: string; message: string; index?: number }[]
}

/** Summaries that were there when a compaction needed them, came later, or never. */
export interface SummaryCounts { ready?: number; late?: number; failed?: number }

export interface TenantRow {
  tenant: string
  sessions?: number
  input_tokens?: number
  turns?: number
  generations?: number
  saved_tokens?: number
  rereads?: number
  reruns?: number
  cost?: Cost
  levels?: Record<string, number>
  last_turn_ms?: number
  rejected?: number
  prepared?: number
  waiting?: number
  summaries?: SummaryCounts
  outcome_bytes_hour?: number
  outcome_bytes_bound?: number
  models?: { model?: string; sessions?: number; input_tokens?: number; saved_tokens?: number; cost?: Cost; summaries?: SummaryCounts }[]
}

export interface TenantList { total?: number; tenants?: TenantRow[]; after?: string; missing?: number[] }

export interface Decided {
  accepted?: boolean
  decided?: boolean
  code?: string
  message?: string
  hint?: string
  generation?: number
  compaction?: Compaction
}

export interface Preview {
  known?: boolean
  accepted?: boolean
  code?: string
  message?: string
  hint?: string
  compaction?: Compaction
  edits?: number
  summary?: { lane?: string; from?: { turn: number; index: number }; to?: { turn: number; index: number }; provider?: string; model?: string }
}

/** A policy of POST …/whatif, and what would have become of the session; money is in billionths of a dollar. */
export interface Choice {
  recorded?: boolean
  set: string[]
  policy: { enabled: boolean; trigger_mode: string; threshold: number; target: number; info: number }
  available_input_tokens: number
  trigger_tokens: number
  target_tokens: number
  summaries_by: string
  summaries_unpriced?: boolean
  calls: number
  compactions: number
  reasons: Record<string, number>
  facts: Record<string, { kept: number; all: number }>
  saved_tokens: number
  sent_tokens: number
  mean_tokens: number
  peak_tokens: number
  over_window: number
  summaries: { made: number }
  costs: { priced_calls: number; input: number; summaries: number; lost: number; reported_calls?: number; estimated_calls?: number }
  rereads: number
  reruns: number
}

/** The recorded run comes first; the policy in force has its row where it differs. */
export interface WhatIf { policies?: Choice[] }

/** An event of /v1/events: its subject without a payload. */
export interface Signal { partition: number; tenant?: string; session?: string; time_ms: number; owner?: string; epoch?: number }
