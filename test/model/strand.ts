/*
 * The chain of an agent in the simple model, and the state that follows from a chain. It shares no code with
 * the server; it is written from the documents of the interface and the record format.
 */

/** Zones by their names on the wire. */
export const zoneNames = ['free', 'governed', 'protected', 'immutable_core'] as const
export type ZoneName = (typeof zoneNames)[number]

/** A record of a chain. Unpredictable values (hash, clock, signature, salt) are read from the server. */
export interface ChainRecord {
  seq: number
  hash: string
  prev: string
  /** `<12 hex>-<4 hex>`; the texts sort like the readings. */
  hlc: string
  type: string
  /** The public key that its header names. */
  key: string
  signature: string | null
  sealedBy?: number
  // Bodies have every shape.
  // oxlint-disable-next-line no-explicit-any
  body: any
  bodyBytes: number
}

/** An edge as recorded on the strand of its source. */
export interface Edge {
  src: string
  dst: string
  edge_type: string
  weight: number
}

/** The state at the end of a chain. */
export interface View {
  zone: ZoneName
  /** The key for the next record. */
  key: string
  policies: unknown[]
  /** Hashes of records. */
  deleted: Set<string>
  erased: Set<string>
  /** By type and destination. */
  edges: Map<string, Edge>
}

/** Reads a chain from its genesis record to its end. */
export function viewOf(chain: readonly ChainRecord[]): View {
  const genesis = chain[0]
  if (genesis === undefined) throw new Error('Expected a genesis record')
  const view: View = {
    zone: genesis.body.zone,
    key: genesis.body.public_key,
    policies: [],
    deleted: new Set(),
    erased: new Set(),
    edges: new Map(),
  }
  for (const { type, body } of chain) {
    if (type === 'sys/tombstone') view.deleted.add(body.target)
    if (type === 'sys/restore') view.deleted.delete(body.target)
    if (type === 'sys/erase') view.erased.add(body.target)
    if (type === 'sys/zone') view.zone = body.zone
    if (type === 'sys/policy') view.policies = body.policies
    if (type === 'sys/key_rotate') view.key = body.public_key
    if (type === 'edge/add') view.edges.set(`${body.edge_type} ${body.dst}`, body)
    if (type === 'edge/remove') view.edges.delete(`${body.edge_type} ${body.dst}`)
  }
  return view
}

/** The part of a chain that existed at a moment. */
export function chainAt(chain: readonly ChainRecord[], moment: string): ChainRecord[] {
  return chain.filter(({ hlc }) => hlc <= moment)
}

/** Whether a record is one of the server, which queries return only if they name its type. */
export function isSystem(type: string): boolean {
  return type.startsWith('sys/') || type.startsWith('edge/')
}

/** The records that clients wrote. */
export function written(chain: readonly ChainRecord[]): ChainRecord[] {
  return chain.filter(({ type }) => !isSystem(type))
}

/** Edges in the order of pages: by type, then by the agent at the other end. */
export function inOrder(edges: Iterable<Edge>, other: 'src' | 'dst'): Edge[] {
  const sortKey = (edge: Edge) => `${edge.edge_type} ${edge[other]}`
  return [...edges].sort((left, right) => compareTexts(sortKey(left), sortKey(right)))
}

/** The order of ASCII texts by their bytes. */
export function compareTexts(left: string, right: string): number {
  if (left === right) return 0
  return left < right ? -1 : 1
}

/** A clock reading of the first or the last instant of a millisecond. */
export function hlcOf(ms: number, counter: 'first' | 'last'): string {
  return `${ms.toString(16).padStart(12, '0')}-${counter === 'first' ? '0000' : 'ffff'}`
}

/** The milliseconds of a clock reading. */
export function msOf(hlc: string): number {
  return Number.parseInt(hlc.slice(0, 12), 16)
}
