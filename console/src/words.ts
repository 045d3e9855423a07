// Names of the wire in a few words. A name that is not here is shown as it is.

const reasons: Record<string, string> = {
  threshold: 'threshold reached',
  limit: 'available input full',
  background: 'summary arrived',
  every_turn: 'clears old results each turn',
  arrival: 'large result cut on arrival',
  media: 'too many images or documents',
  entries: 'too many messages',
  manual: 'requested',
  overflow: 'provider refused the call',
  age: 'first turns leave the log',
  cost: 'calls cost more',
  idle: 'idle',
  rewind: 'rewound',
}
export const reason = (name: string | undefined): string => (name ? (reasons[name] ?? name) : '–')

const sentences: Record<string, string> = {
  threshold: 'The input reached the threshold.',
  limit: 'The input reached the available input, so the session was compacted at once.',
  background: 'A summary that was requested earlier arrived and replaced older messages.',
  every_turn: 'The policy clears old results after each turn.',
  arrival: 'The policy cuts large results as they arrive.',
  media: 'The history had more images or documents than the provider takes.',
  entries: 'The history had more messages than the policy allows.',
  manual: 'An agent or an operator requested it.',
  overflow: 'The provider refused a call because it was too long.',
  age: 'The first turns will leave the log soon.',
  cost: 'Later calls are expected to pay for the cache that this breaks.',
  idle: 'The session was idle for long.',
  rewind: 'An agent or an operator returned to an earlier view.',
}
export const why = (name: string | undefined): string => (name ? (sentences[name] ?? `The reason is ${name}.`) : '')

const stages: Record<string, string> = {
  prune: 'cleared old tool results',
  deduplicate: 'replaced earlier reads of a file',
  summarize: 'put a summary in place of old messages',
  truncate: 'hid the oldest messages behind a notice',
}
export const stage = (name: string): string => stages[name] ?? name

const ops: Record<string, string> = {
  clear: 'cleared',
  clear_old: 'cleared, old',
  deduplicate: 'read again later',
  truncate: 'hidden, truncated',
  condense: 'summarized',
  keep: 'kept in view',
  trim: 'cut',
  restore: 'shown again',
  answer: 'result added',
  call: 'call added',
  move: 'moved',
  drop: 'left out',
  blank: 'blank text left out',
  join: 'joined',
  split: 'split',
  place: 'moved',
  order: 'reordered',
  role: 'role changed',
  rename: 'id changed',
  unmark: 'cache mark removed',
  bridge: 'bridge added',
  close: 'end added',
  reason: 'reasoning added',
  unbind: 'thinking left out',
}
export const op = (name: string | undefined): string => (name ? (ops[name] ?? name) : '')

export const levelTag = (level: string | undefined): string =>
  level === 'blocking' || level === 'error' || level === 'compacting' ? 'bad' : level === 'warning' ? 'warn' : level === 'info' ? 'info' : ''

const kinds: Record<string, [string, string]> = {
  system: ['System prompt', 'c-system'],
  tool_definition: ['Tool definition', 'c-tools'],
  user: ['User', 'c-user'],
  assistant: ['Assistant', 'c-assistant'],
  thinking: ['Thinking', 'c-thinking'],
  call: ['Call', 'c-calls'],
  result: ['Result', 'c-results'],
  media: ['Media', 'c-media'],
  summary: ['Summary', 'c-summary'],
  record: ['Record', 'c-record'],
  placeholder: ['Placeholder', 'c-other'],
  correction: ['Correction', 'c-other'],
}
export const kindName = (kind: string): string => kinds[kind]?.[0] ?? kind
export const kindColour = (kind: string): string => kinds[kind]?.[1] ?? 'c-other'

const feed: Record<string, [string, string]> = {
  acquired: ['acquired', 'good'],
  released: ['released', ''],
  failed: ['failed', 'bad'],
  quarantined: ['quarantined', 'bad'],
  foreign: ['foreign outcome', 'bad'],
  retrying: ['retrying', 'warn'],
  summary_failed: ['summary failed', 'warn'],
  outcomes_limited: ['outcomes limited', 'warn'],
}
export const feedKind = (kind: string): [string, string] => feed[kind] ?? [kind, '']
