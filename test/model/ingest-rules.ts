import { anything } from './matching.js'
import type { Expected } from './mutations.js'
import { genesisOf, placeRefusals, refused, type Growth, type Verdict } from './verdict.js'
import { chainOf, nextSeq, type ModelRequest, type Call, type World } from './world.js'

/* The rules for records and for the lines of an ingest stream. */

/** The code with which a record of a write is refused; undefined if the record is valid. */
export function itemRefusal({
  data,
  type = 'record',
}: {
  data?: unknown
  type?: unknown
}): string | undefined {
  if (typeof type !== 'string' || !/^[a-z0-9_./-]{1,64}$/.test(type)) return 'validation_failed'
  if (/^(sys|auth|edge)\//.test(type)) return 'reserved_type'
  return isObject(data) ? undefined : 'validation_failed'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A parsed line. */
interface Line {
  number: number
  /** Empty if the line names no agent. */
  agent: string
  record?: Expected
  code?: string
}

/** The verdict on a stream of lines of one or several agents. */
export function ingestVerdict(
  world: World,
  call: Call,
  request: Extract<ModelRequest, { kind: 'ingest' | 'ingestMany' }>,
): Verdict {
  if (request.kind === 'ingest') {
    const refusals = placeRefusals(world, call, { agent: request.agent, emerges: true })
    if (refusals.length > 0) return refused(...refusals)
  }
  const lines = request.lines.flatMap((text, index) => readLine(text, index + 1, { call, request }))
  const bad = lines.filter(({ code }) => code !== undefined)
  if (bad.length > 0 && (request.all || bad.length === lines.length)) return refused('ingest_rejected')
  const firsts = new Map<string, number>()
  const grows: Growth[] = []
  for (const [agent, records] of byAgent(lines)) {
    const isNew = !world.chains.has(agent)
    firsts.set(agent, nextSeq(world, agent) + (isNew ? 1 : 0))
    const genesis = isNew ? [genesisOf(world, agent, { zone: 'governed' })] : []
    const signed = call.signing === 'group' ? 'last' : 'each'
    grows.push({ agent, records: [...genesis, ...records], signed })
  }
  const errors = bad.map(({ number, agent, code }) => ({
    line: number,
    ...(request.kind === 'ingestMany' && agent !== '' && { agent }),
    code,
    detail: anything,
  }))
  const codes = [...new Set(bad.map(({ code }) => code ?? ''))].sort()
  const byCode = codes.map((code) => [code, bad.filter((line) => line.code === code).length])
  const counts = {
    accepted: lines.length - bad.length,
    rejected: bad.length,
    ...(bad.length > 0 && { rejected_by_code: Object.fromEntries(byCode) }),
    errors,
  }
  const reached = (agent: string) => reachedBy(world, agent, firsts.get(agent))
  return {
    kind: 'done',
    status: 200,
    grows,
    answer() {
      if (request.kind === 'ingest') return { ...counts, ...reached(request.agent) }
      const accepted = lines.filter(({ agent, code }) => agent !== '' && code === undefined)
      const names = new Set(accepted.map(({ agent }) => agent))
      const agents = Object.fromEntries(
        [...names].map((name) => {
          const own = lines.filter(({ agent }) => agent === name)
          const rejected = own.filter(({ code }) => code !== undefined).length
          return [name, { accepted: own.length - rejected, rejected, ...reached(name) }]
        }),
      )
      return { ...counts, agents }
    },
    ...(!reachesShard(request, lines) && { notStored: true }),
  }
}

/** Whether a shard gets any line of a stream; if not, no answer is stored. */
function reachesShard(
  request: Extract<ModelRequest, { kind: 'ingest' | 'ingestMany' }>,
  lines: readonly Line[],
): boolean {
  if (request.kind === 'ingestMany') return lines.some(({ agent }) => agent !== '')
  return request.all || request.lines.length > 0
}

function readLine(
  text: string,
  number: number,
  { call, request }: { call: Call; request: Extract<ModelRequest, { kind: 'ingest' | 'ingestMany' }> },
): Line[] {
  if (text.trim() === '') return []
  const value = parsed(text)
  if (request.kind === 'ingest') {
    const { agent } = request
    return isObject(value)
      ? [{ number, agent, record: { type: 'record', body: value } }]
      : [{ number, agent, code: 'validation_failed' }]
  }
  if (!isObject(value)) return [{ number, agent: '', code: 'validation_failed' }]
  const { agent, data, type } = value
  if (typeof agent !== 'string' || !/^\w[\w.-]{0,127}$/.test(agent))
    return [{ number, agent: '', code: 'validation_failed' }]
  if (!agent.startsWith(call.by.reach)) return [{ number, agent: '', code: 'forbidden' }]
  const code = itemRefusal({ data, type })
  if (code !== undefined) return [{ number, agent, code }]
  return [{ number, agent, record: { type: String(type ?? 'record'), body: data } }]
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Invalid JSON is treated like a value that is not an object.
    return undefined
  }
}

function byAgent(lines: readonly Line[]): Map<string, Expected[]> {
  const found = new Map<string, Expected[]>()
  for (const { agent, record } of lines) {
    if (record !== undefined) found.set(agent, [...(found.get(agent) ?? []), record])
  }
  return found
}

/** The first and last seq by which an agent's chain has grown. */
function reachedBy(world: World, agent: string, first: number | undefined): Record<string, unknown> {
  if (first === undefined) return { first_seq: null, last_seq: null, chain_head: null }
  const last = chainOf(world, agent).at(-1)
  return { first_seq: first, last_seq: last?.seq, chain_head: last?.hash }
}
