import { fc } from '../support/fast-check.js'
import { anyRead, firstAgents, names as agent, otherAgents, plain } from './reads.js'

/*
 * Steps as plain data, drawn by fast-check. They contain names of agents, and numbers of records, edges,
 * proposals and moments, which are resolved when the step is carried out.
 */

const zone = fc.oneof(
  { weight: 4, arbitrary: fc.constant('free') },
  { weight: 3, arbitrary: fc.constant('governed') },
  { weight: 2, arbitrary: fc.constant('protected') },
  { weight: 1, arbitrary: fc.constant('immutable_core') },
)
const pick = fc.nat({ max: 30 })

/** The actor of a step, mostly one that has the permission. */
const by = fc.oneof(
  { weight: 24, arbitrary: fc.constantFrom('root', 'writer', 'admin', 'second', 'deputy') },
  { weight: 3, arbitrary: fc.constant('appender') },
  { weight: 3, arbitrary: fc.constant('limited') },
  { weight: 1, arbitrary: fc.constant('decider') },
)

/** The headers of a call; `killed` means that the server is killed during the call. */
const carries = fc.oneof(
  { weight: 60, arbitrary: fc.constant('nothing') },
  { weight: 20, arbitrary: fc.constant('key') },
  { weight: 8, arbitrary: fc.constant('head') },
  { weight: 3, arbitrary: fc.constant('stale head') },
  { weight: 1, arbitrary: fc.constant('killed') },
)
const carriesNoHead = fc.oneof(
  { weight: 60, arbitrary: fc.constant('nothing') },
  { weight: 20, arbitrary: fc.constant('key') },
  { weight: 1, arbitrary: fc.constant('killed') },
)

const data = plain({
  tag: fc.constantFrom('x', 'y', 'z'),
  v: fc.constantFrom<unknown>(0, 1, 2.5, -1, 'text', '', true, false, null),
})

const item = fc.oneof(
  { weight: 12, arbitrary: plain({ data }) },
  {
    weight: 6,
    arbitrary: plain({ data, type: fc.constantFrom<unknown>('reading', 'note/a', 'record') }),
  },
  {
    weight: 1,
    arbitrary: plain({
      data,
      type: fc.constantFrom<unknown>('sys/zone', 'auth/x', 'edge/add', 'No Type', 3),
    }),
  },
  { weight: 1, arbitrary: plain({ data: fc.constantFrom<unknown>(null, 7, 'text', []) }) },
)

/** A line of an ingest stream: an item, or an invalid line. */
const line = fc.oneof(
  { weight: 6, arbitrary: item },
  { weight: 1, arbitrary: fc.constantFrom('', '  ', '{"n":', '[]', '7') },
)

const create = plain({
  do: fc.constant('create' as const),
  agent: fc.constantFrom(...otherAgents, firstAgents[0]),
  zone,
  seed: fc.option(fc.nat({ max: 4 }), { nil: undefined }),
  by,
  carries: carriesNoHead,
})

const write = plain({
  do: fc.constant('write' as const),
  agent,
  via: fc.constantFrom('agent', 'collection', 'ingest'),
  item,
  by,
  carries,
  grouped: fc.boolean(),
})

const batch = plain({
  do: fc.constant('batch' as const),
  agent,
  via: fc.constantFrom('agent', 'collection'),
  items: fc.array(item, { minLength: 1, maxLength: 9 }),
  atomic: fc.boolean(),
  by,
  carries,
  grouped: fc.boolean(),
})

const ingest = plain({
  do: fc.constant('ingest' as const),
  /** Undefined for a stream of many agents. */
  agent: fc.option(agent, { nil: undefined }),
  lines: fc.array(plain({ line, agent }), { minLength: 1, maxLength: 6 }),
  all: fc.boolean(),
  by,
  carries: carriesNoHead,
  grouped: fc.boolean(),
})

const mutate = plain({
  do: fc.constant('mutate' as const),
  agent,
  /** `turn` deletes what is active and restores what is deleted. */
  action: fc.oneof(
    { weight: 8, arbitrary: fc.constant('turn' as const) },
    { weight: 4, arbitrary: fc.constantFrom('delete', 'restore', 'erase') },
  ),
  target: fc.oneof(
    { weight: 16, arbitrary: plain({ of: fc.constant('written' as const), pick }) },
    { weight: 1, arbitrary: plain({ of: fc.constantFrom('system', 'nothing'), pick }) },
  ),
  by,
  carries,
})

const edgeTypes = ['likes', 'feeds', 'like'] as const
const edgeType = fc.constantFrom(...edgeTypes)

const addEdge = plain({
  do: fc.constant('addEdge' as const),
  src: agent,
  dst: agent,
  edgeType,
  weight: fc.constantFrom(undefined, 0, 2.5, -1),
  by,
  carries,
})

const removeEdge = plain({
  do: fc.constant('removeEdge' as const),
  /** The number of an existing edge; undefined for the edge that `src`, `dst` and `edgeType` name. */
  pick: fc.option(pick, { nil: undefined, freq: 8 }),
  src: agent,
  dst: agent,
  edgeType,
  by,
  carries,
})

const change = plain({
  do: fc.constant('change' as const),
  agent,
  change: fc.oneof(
    plain({ action: fc.constant('zone' as const), zone }),
    plain({
      action: fc.constant('rotate_key' as const),
      seed: fc.option(fc.nat({ max: 4 }), { nil: undefined }),
    }),
    plain({ action: fc.constant('policies' as const), policies: fc.nat({ max: 2 }) }),
  ),
  by,
  carries,
})

const vote = plain({
  do: fc.constant('vote' as const),
  of: fc.constantFrom('open', 'open', 'open', 'open', 'all', 'nothing'),
  pick,
  vote: fc.constantFrom('approve', 'approve', 'approve', 'reject', 'cancel'),
  by: fc.constantFrom('admin', 'second', 'root', 'deputy', 'decider', 'limited', 'writer'),
  carries: carriesNoHead,
})

/** All permitted actors approve a proposal one after another, even if it is no longer open. */
const approvals = plain({ do: fc.constant('approvals' as const), pick })

const again = plain({
  do: fc.constant('again' as const),
  /** Counted from the latest call with a key. */
  pick: fc.oneof(fc.nat({ max: 3 }), pick),
  request: fc.constantFrom('same', 'same', 'other'),
})

const together = plain({
  do: fc.constant('together' as const),
  writes: fc.array(plain({ agent, data, grouped: fc.boolean() }), { minLength: 2, maxLength: 6 }),
})

const time = plain({
  do: fc.constant('time' as const),
  ms: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(1, 0, 999, 30_000, 60_000) },
    // Right before or exactly at the next end of a proposal.
    { weight: 4, arbitrary: fc.constantFrom('due', 'nearly due') },
    { weight: 2, arbitrary: fc.constantFrom(-1, -20_000) },
    { weight: 2, arbitrary: fc.constantFrom(3_600_000, 86_400_000, 604_800_000) },
  ),
  server: fc.oneof(
    { weight: 10, arbitrary: fc.constant('runs') },
    { weight: 1, arbitrary: fc.constantFrom('stops', 'killed') },
  ),
})

/** Any step. */
const anyStep = fc.oneof(
  { weight: 2, arbitrary: create },
  { weight: 8, arbitrary: write },
  { weight: 3, arbitrary: batch },
  { weight: 5, arbitrary: ingest },
  { weight: 16, arbitrary: mutate },
  { weight: 7, arbitrary: addEdge },
  { weight: 4, arbitrary: removeEdge },
  { weight: 7, arbitrary: change },
  { weight: 9, arbitrary: vote },
  { weight: 3, arbitrary: approvals },
  { weight: 6, arbitrary: again },
  { weight: 1, arbitrary: together },
  { weight: 5, arbitrary: time },
  { weight: 24, arbitrary: anyRead },
)

export type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never
export type StepOf<K extends Step['do']> = Extract<Step, { do: K }>

/** A run: the settings of the server, the zones of the first agents, and the steps. */
export const anyRun = plain({
  shards: fc.constantFrom(2, 3),
  signing: fc.constantFrom('record', 'record', 'group'),
  zones: fc.tuple(zone, zone, zone, zone),
  steps: fc.array(anyStep, { minLength: 1, maxLength: 160, size: 'max' }),
})

export type Run = typeof anyRun extends fc.Arbitrary<infer T> ? T : never
