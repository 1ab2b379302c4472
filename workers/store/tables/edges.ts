import type { EdgePlace } from '../../../src/protocol/graph-messages.js'
import { compareHlc, type Hlc } from '../../../src/strand/hlc.js'
import type { Environment } from '../environment.js'

/*
 * Edges, in the shard of their source. Each is found in two indexes, by its source and by its destination, which hold
 * the same value: the edge's current state. Earlier states are in the history, by the time of each change, so that both
 * indexes can be read as of a moment (docs/adr/0018-graph.md).
 *
 *   edges           agent number of the source u32, type, NUL, destination
 *   edges-in        destination, NUL, type, NUL, source
 *   edge-history    the key in `edges`, NUL, clock milliseconds u48, clock counter u16
 */

/** The state of an edge from one record of its source's strand on. */
export interface EdgeState {
  /** Number of the source. */
  agentNo: number
  /** Of the record. */
  seq: number
  hlc: Hlc
  /** False: it was removed. */
  live: boolean
  weight: number
}

/** A change of an edge that is decided. */
export interface EdgeChange extends EdgeState {
  src: string
  dst: string
  edgeType: string
}

/** An edge by its type and ends, by which a commit group finds it, too. */
export interface EdgeName {
  agentNo: number
  edgeType: string
  dst: string
}

/** Which edges of one agent are read. */
export interface EdgeRange {
  /** The agent: its number for outbound edges, its name for inbound ones. */
  of: { agentNo: number } | { name: string }
  edgeType?: string
  after?: EdgePlace
  asOf?: Hlc
}

/** An edge by its ends as one text. */
export function edgeNameKey({ agentNo, edgeType, dst }: EdgeName): string {
  return `${agentNo}/${edgeType}\0${dst}`
}

/** The current state of an edge; `undefined` when there never was one. */
export function findEdge({ edges }: Environment, name: EdgeName): EdgeState | undefined {
  const value = edges.find(outKey(name))
  return value === undefined ? undefined : decodeState(value)
}

/**
 * The edges of an agent, by type and then by the other end, as they are or were. Removed edges are yielded too, with
 * their state, and so are edges not yet added then, without one: looking at them is work that the caller bounds.
 */
export function* edgesOf(
  environment: Environment,
  { of, edgeType, after, asOf }: EdgeRange,
): Generator<EdgePlace & { state?: EdgeState }> {
  const outbound = 'agentNo' in of
  const table = outbound ? environment.edges : environment.edgesIn
  const owner = outbound ? numberKey(of.agentNo) : Buffer.from(`${of.name}\0`)
  const prefix = edgeType === undefined ? owner : Buffer.concat([owner, Buffer.from(`${edgeType}\0`)])
  // The smallest key after that of `after`.
  const start =
    after === undefined ? prefix : Buffer.concat([owner, Buffer.from(`${after.edgeType}\0${after.other}\0`)])
  for (const { key, value } of table.getRange({ start, end: behind(prefix) })) {
    const [type = '', other = ''] = key.subarray(owner.length).toString().split('\0')
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

/** The state of an edge at a moment; `undefined` when it had not been added by then. */
export function edgeAt(environment: Environment, name: EdgeName, moment: Hlc): EdgeState | undefined {
  const now = findEdge(environment, name)
  if (now === undefined || compareHlc(now.hlc, moment) <= 0) return now
  return stateAt(environment, name, moment)
}

/** How many rows there are of edges from an agent: of current states, and of earlier ones. */
export function edgeRowCounts(
  { edges, edgeHistory }: Environment,
  agentNo: number,
): { edges: number; history: number } {
  const range = { start: numberKey(agentNo), end: numberKey(agentNo + 1) }
  return { edges: edges.getKeysCount(range), history: edgeHistory.getKeysCount(range) }
}

/** Writes changes of edges in their order, within the caller's transaction. */
export function putEdges(environment: Environment, changes: Iterable<readonly EdgeChange[]>): void {
  for (const change of flat(changes)) {
    const { src, dst, edgeType } = change
    const key = outKey(change)
    const before = environment.edges.get(key)
    if (before !== undefined) {
      environment.edgeHistory.put(historyKey(key, decodeState(before).hlc), before)
    }
    const value = encodeState(change)
    environment.edges.put(key, value)
    environment.edgesIn.put(Buffer.from(`${dst}\0${edgeType}\0${src}`), value)
  }
}

function* flat(changes: Iterable<readonly EdgeChange[]>): Generator<EdgeChange> {
  for (const list of changes) yield* list
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

/** The first key after all that begin with `prefix`, whose last byte is NUL or the last one of an agent number. */
function behind(prefix: Buffer): Buffer {
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
  return {
    agentNo: value.readUInt32BE(0),
    seq: value.readUIntBE(4, 6),
    hlc: { ms: value.readUIntBE(10, 6), counter: value.readUInt16BE(16) },
    live: value[18] === 1,
    weight: value.readDoubleBE(19),
  }
}
