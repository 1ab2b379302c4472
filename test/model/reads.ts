import { fc } from '../support/fast-check.js'

/* Reads as plain data, drawn by fast-check. */

/** An object with the default prototype and drawn members. */
export function plain<T>(members: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  return fc.record(members, { noNullPrototype: true })
}

/** The agents that exist at the start of every run, and other names. */
export const firstAgents = ['alpha', 'arrow', 'beta', 'gamma'] as const
export const otherAgents = ['default', 'delta', 'echo'] as const

/** The name of an agent, mostly of one that exists. */
export const names: fc.Arbitrary<string> = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...firstAgents) },
  { weight: 1, arbitrary: fc.constantFrom(...otherAgents) },
)
const pick = fc.nat({ max: 60 })
const limit = fc.constantFrom(undefined, 1, 2, 3, 7)
const by = fc.constantFrom('root', 'root', 'root', 'decider', 'writer', 'limited')
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

/** A moment at, right before or right after a record, in one of the notations of moments. */
const moment = plain({
  agent: names,
  pick,
  place: fc.constantFrom('at', 'at', 'before', 'after', 'long before', 'now'),
  form: fc.constantFrom('hlc', 'ms', 'iso'),
})
export type Moment = typeof moment extends fc.Arbitrary<infer T> ? T : never

const field = fc.constantFrom('tag', 'v', 'n', 'absent')
const compared = fc.constantFrom<unknown>('x', 'y', 0, 1, 12, true, false, null, 'text')
const where = fc.oneof(
  plain({ field, op: fc.constantFrom('eq', 'ne'), value: compared }),
  plain({ field, op: fc.constant('in'), value: fc.array(compared, { maxLength: 3 }) }),
  plain({
    field,
    op: fc.constantFrom('lt', 'lte', 'gt', 'gte'),
    value: fc.constantFrom<unknown>('x', 'y', 0, 1, 12, 'text'),
  }),
  plain({ field, op: fc.constant('exists'), value: fc.boolean() }),
)
export type Where = typeof where extends fc.Arbitrary<infer T> ? T : never

const query = plain({
  what: fc.constant('query' as const),
  agent: names,
  type: fc.constantFrom('latest', 'time_range'),
  order: optional(fc.constantFrom('asc', 'desc')),
  limit,
  where: optional(fc.array(where, { minLength: 1, maxLength: 2 })),
  types: optional(fc.constantFrom(['record'], ['reading', 'note/*'], ['sys/*'], ['edge/*', 'record'], ['*'])),
  from: optional(moment),
  to: optional(moment),
  /** Whether records are written between the first and the second page, which must not see them. */
  between: fc.boolean(),
  by,
})

const record = plain({ what: fc.constant('record' as const), agent: names, pick, by })
const state = plain({ what: fc.constant('state' as const), agent: names, by })
const agents = plain({
  what: fc.constant('agents' as const),
  prefix: fc.constantFrom('', 'a', 'ar', 'beta', 'x'),
  limit,
  by,
})
const edgeType = optional(fc.constantFrom('likes', 'feeds', 'like'))
const edges = plain({
  what: fc.constant('edges' as const),
  agent: names,
  direction: fc.constantFrom('out', 'in'),
  edgeType,
  asOf: optional(moment),
  limit,
  by,
})
const traversal = plain({
  what: fc.constant('traversal' as const),
  agent: names,
  depth: fc.constantFrom(1, 2, 3),
  edgeType,
  asOf: optional(moment),
  by,
})
const proposals = plain({
  what: fc.constant('proposals' as const),
  agent: optional(names),
  state: optional(fc.constantFrom('proposed', 'applied', 'rejected', 'cancelled', 'expired')),
  limit,
  by,
})
const exported = plain({
  what: fc.constant('export' as const),
  agent: names,
  from: optional(pick),
  to: optional(pick),
  by,
})
const asOf = plain({ what: fc.constant('asOf' as const), agent: names, moment, limit, by })
const stream = plain({
  what: fc.constant('stream' as const),
  agents: fc.uniqueArray(names, { minLength: 1, maxLength: 3 }),
  one: fc.boolean(),
  since: moment,
  /** The index of the event after which the stream is opened again. */
  pick,
  filter: fc.constantFrom(undefined, undefined, 'tag', 'absent'),
})
const proof = plain({ what: fc.constant('proof' as const), agent: names, pick, by })

const anyOf = fc.oneof(
  { weight: 4, arbitrary: record },
  { weight: 6, arbitrary: query },
  { weight: 3, arbitrary: state },
  { weight: 1, arbitrary: agents },
  { weight: 4, arbitrary: edges },
  { weight: 3, arbitrary: traversal },
  { weight: 3, arbitrary: proposals },
  { weight: 1, arbitrary: exported },
  { weight: 5, arbitrary: asOf },
  { weight: 2, arbitrary: stream },
  { weight: 1, arbitrary: proof },
)

export type Read = typeof anyOf extends fc.Arbitrary<infer T> ? T : never
export type ReadOf<K extends Read['what']> = Extract<Read, { what: K }>

/** Any read. */
export const anyRead = plain({ do: fc.constant('read' as const), read: anyOf })
