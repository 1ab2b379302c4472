import { assert } from '../../../src/base/assert.js'
import type { EdgeCursor } from '../../../src/protocol/graph-messages.js'
import { compareHlc, type Hlc } from '../../../src/strand/hlc.js'
import type { Environment } from '../environment.js'
import { byAgentAt } from '../row-move.js'
import { differs } from '../row-faults.js'
import type { TableSpec } from '../table-spec.js'

/*
 * Edges, in the shard of their source. Each edge is in two tables, by source and by destination, with the
 * same value: its current state. Earlier states are in the history, by the time of each change, so that both
 * tables can be read as of a moment (docs/adr/0018-graph.md).
 *
 *   edges           agent number of the source u32, type, NUL, destination
 *   edges-in        destination, NUL, type, NUL, source
 *   edge-history    the key in `edges`, NUL, clock milliseconds u48, clock counter u16
 */

/** The state of an edge since one record on the strand of its source. */
export interface EdgeState {
  /** Number of the source. */
  agentNo: number
  seq: number
  hlc: Hlc
  /** False if the edge was removed. */
  live: boolean
  weight: number
}

/** A change of an edge that is accepted but not on disk yet. */
export interface EdgeChange extends EdgeState {
  src: string
  dst: string
  edgeType: string
}

export interface EdgeName {
  agentNo: number
  edgeType: string
  dst: string
}

export interface EdgeRange {
  /** The agent, by number for outbound edges and by name for inbound ones. */
  of: { agentNo: number } | { name: string }
  edgeType?: string
  after?: EdgeCursor
  asOf?: Hlc
}

function edgeNameKey({ agentNo, edgeType, dst }: EdgeName): string {
  return `${agentNo}/${edgeType}\0${dst}`
}

/** The current state of an edge; `undefined` if it never existed. */
export function findEdge(environment: Environment, name: EdgeName): EdgeState | undefined {
  const value = environment.edges.find(outKey(name))
  return value === undefined ? undefined : decodeState(value)
}

/** Reads an edge that will be replaced, so that not the commit fails. @throws Error if its row is damaged */
export function assertReplaceable(environment: Environment, name: EdgeName): void {
  const value = environment.edges.get(outKey(name))
  if (value !== undefined) decodeState(value)
}

/**
 * The edges of an agent, by type and then by the other end, now or as of a moment. Also yields removed edges,
 * and edges that were added after the moment, without a state: the caller must bound how many edges are read.
 */
export function* edgesOf(
  environment: Environment,
  { of, edgeType, after, asOf }: EdgeRange,
): Generator<EdgeCursor & { state?: EdgeState }> {
  const outbound = 'agentNo' in of
  const table = outbound ? environment.edges : environment.edgesIn
  const near = outbound ? numberKey(of.agentNo) : Buffer.from(`${of.name}\0`)
  const prefix = edgeType === undefined ? near : Buffer.concat([near, Buffer.from(`${edgeType}\0`)])
  // The smallest key that sorts after `after`.
  const start =
    after === undefined ? prefix : Buffer.concat([near, Buffer.from(`${after.edgeType}\0${after.other}\0`)])
  for (const { key, value } of table.getRange({ start, end: keyAfter(prefix) })) {
    const [type = '', other = ''] = key.subarray(near.length).toString().split('\0')
    const place = { edgeType: type, other }
    const now = decodeState(value)
    if (asOf === undefined || compareHlc(now.hlc, asOf) <= 0) {
      yield { ...place, state: now }
      continue
    }
    const dst = outbound ? other : of.name
    const then = stateAt(environment, { agentNo: now.agentNo, edgeType: type, dst }, asOf)
    yield then === undefined ? place : { ...place, state: then }
  }
}

/** The state of an edge at a moment; `undefined` if it was added later. */
export function edgeAt(environment: Environment, name: EdgeName, moment: Hlc): EdgeState | undefined {
  const now = findEdge(environment, name)
  if (now === undefined || compareHlc(now.hlc, moment) <= 0) return now
  return stateAt(environment, name, moment)
}

/** The number of rows of edges from an agent: current states and earlier ones. */
export function edgeRowCounts(environment: Environment, agentNo: number): { edges: number; history: number } {
  const range = { start: numberKey(agentNo), end: numberKey(agentNo + 1) }
  return {
    edges: environment.edges.getKeysCount(range),
    history: environment.edgeHistory.getKeysCount(range),
  }
}

/** Changes of edges: those of each edge in order. */
export class EdgeChanges {
  readonly #byEdge = new Map<string, EdgeChange[]>()

  /** The number of changed edges. */
  get size(): number {
    return this.#byEdge.size
  }

  add(change: EdgeChange): void {
    const key = edgeNameKey(change)
    const before = this.#byEdge.get(key)
    if (before === undefined) this.#byEdge.set(key, [change])
    else before.push(change)
  }

  /** The last change of an edge. */
  last(name: EdgeName): EdgeChange | undefined {
    return this.#byEdge.get(edgeNameKey(name))?.at(-1)
  }

  *[Symbol.iterator](): Generator<EdgeChange> {
    for (const list of this.#byEdge.values()) yield* list
  }
}

export const edges: TableSpec<Environment, EdgeChanges> = {
  open: (environment) => environment,
  // Edges are in the shard of their source, whose number is also in the value.
  moves: {
    edges: byAgentAt({ key: 0, value: 0 }),
    edgesIn: byAgentAt({ value: 0 }),
    edgeHistory: byAgentAt({ key: 0, value: 0 }),
  },
  *faults({ edges: outbound, edgesIn }) {
    yield* differs(['edges by destination', edgesIn], ['edges', outbound])
  },
  changes: () => new EdgeChanges(),
  rows: ({ size }) => size,
  put(environment, changes) {
    for (const change of changes) {
      const { src, dst, edgeType } = change
      const key = outKey(change)
      const before = environment.edges.get(key)
      if (before !== undefined) environment.edgeHistory.put(historyKey(key, decodeState(before).hlc), before)
      const value = encodeState(change)
      environment.edges.put(key, value)
      environment.edgesIn.put(Buffer.from(`${dst}\0${edgeType}\0${src}`), value)
    }
  },
}

/** The state at `moment` of an edge that has changed since. */
function stateAt({ edgeHistory }: Environment, name: EdgeName, moment: Hlc): EdgeState | undefined {
  const key = outKey(name)
  const range = {
    start: historyKey(key, moment),
    end: historyKey(key, { ms: 0, counter: 0 }),
    reverse: true,
    inclusiveEnd: true,
    limit: 1,
  }
  for (const { value } of edgeHistory.getRange(range)) return decodeState(value)
  return undefined
}

function outKey({ agentNo, edgeType, dst }: EdgeName): Buffer {
  return Buffer.concat([numberKey(agentNo), Buffer.from(`${edgeType}\0${dst}`)])
}

function historyKey(edgeKey: Buffer, { ms, counter }: Hlc): Buffer {
  const key = Buffer.alloc(edgeKey.length + 9)
  key.set(edgeKey)
  key.writeUIntBE(ms, edgeKey.length + 1, 6)
  key.writeUInt16BE(counter, edgeKey.length + 7)
  return key
}

function numberKey(agentNo: number): Buffer {
  const key = Buffer.allocUnsafe(4)
  key.writeUInt32BE(agentNo, 0)
  return key
}

/** The smallest key after all keys with `prefix`, which ends in NUL or in an agent number. */
function keyAfter(prefix: Buffer): Buffer {
  const end = Buffer.from(prefix)
  for (let index = end.length - 1; index >= 0; index--) {
    const byte = end[index] ?? 0
    end[index] = (byte + 1) % 256
    if (byte < 255) break
  }
  return end
}

const STATE_BYTES = 27

function encodeState({ agentNo, seq, hlc, live, weight }: EdgeState): Buffer {
  const value = Buffer.allocUnsafe(STATE_BYTES)
  value.writeUInt32BE(agentNo, 0)
  value.writeUIntBE(seq, 4, 6)
  value.writeUIntBE(hlc.ms, 10, 6)
  value.writeUInt16BE(hlc.counter, 16)
  value[18] = live ? 1 : 0
  value.writeDoubleBE(weight, 19)
  return value
}

function decodeState(value: Buffer): EdgeState {
  assert(value.length === STATE_BYTES, 'the row of an edge is whole')
  return {
    agentNo: value.readUInt32BE(0),
    seq: value.readUIntBE(4, 6),
    hlc: { ms: value.readUIntBE(10, 6), counter: value.readUInt16BE(16) },
    live: value[18] === 1,
    weight: value.readDoubleBE(19),
  }
}
