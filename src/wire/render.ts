import { asBuffer } from '../base/bytes.js'
import type { TextBuffer } from '../base/text-buffer.js'
import { formatHlc } from '../strand/hlc.js'
import type { Hlc } from '../strand/hlc.js'
import { proposalId } from '../strand/proposal.js'
import type { Zone } from '../strand/zone.js'

/*
 * Renders the most frequent answers as text. Bodies are canonical JSON and are sent as stored; all other
 * members need no escaping (hex, agent names, record types). The schemas in records.ts and agents.ts describe
 * the same answers, and a test compares the two.
 */

/** The parts of a record that an answer contains. */
export interface ShownRecord {
  seq: number
  hlc: Hlc
  type: string
  /** 64 hex digits. */
  hash: string
  /** 64 hex digits; zeros in the genesis record. */
  prev: string
  /** The canonical JSON text of the body, UTF-8; `null` once erased. */
  body: Uint8Array
  /** Body and salt are destroyed; their commitment is in another table (workers/store/tables/erasures.ts). */
  erased?: true
  /** 64 bytes; absent if a later record of the same commit group seals this one. */
  signature?: Uint8Array
  /** The seq of the record whose signature covers this one. */
  sealedBy?: number
}

/** The parts of an agent that an answer contains. */
export interface ShownAgent {
  name: string
  zone: Zone
  publicKey: string
  strand: string
  createdAtMs: number
  importedRecords?: number
}

/** The head of a strand. */
export interface ShownHead {
  seq: number
  hash: string
  hlc: Hlc
  /** Hex; the last record of a commit group is always signed. */
  signature: string
}

/** `WriteResponse` (src/wire/records.ts) as text. */
export function writeResponse(agent: string, record: ShownRecord): string {
  const hash = record.hash
  return (
    `{"record_id":"${hash}","id":"${hash}","content_hash":"${hash}","hash":"sha256:${hash}",` +
    `"parent_hash":"${record.prev}",${clock(record.hlc)},"seq":${record.seq},` +
    `${seal(record)},"agent":"${agent}"}`
  )
}

/** `RecordView` (src/wire/records.ts) as text. */
export function recordView(record: ShownRecord, publicKey: string, deleted: boolean): string {
  return beforePayload(record) + text(record.body) + afterPayload(record, publicKey, deleted)
}

/** Adds a record to the rows of a page, as `RecordView`: UTF-8, separated by commas, the body as stored. */
export function addRecordRow(rows: TextBuffer, record: ShownRecord, publicKey: string): void {
  rows.addAscii((rows.length === 0 ? '' : ',') + beforePayload(record))
  rows.addBytes(record.body)
  rows.addAscii(afterPayload(record, publicKey, false))
}

function beforePayload(record: ShownRecord): string {
  return (
    `{"record_id":"${record.hash}","content_hash":"${record.hash}","parent_hash":"${record.prev}",` +
    `"seq":${record.seq},${clock(record.hlc)},"type":"${record.type}","payload":`
  )
}

function afterPayload(record: ShownRecord, publicKey: string, deleted: boolean): string {
  return `,${seal(record)},"public_key":"${publicKey}","deleted":${deleted},"erased":${record.erased === true}}`
}

/** `data:` of a stream event (docs/adr/0007-streams.md). One line: canonical JSON has no line breaks. */
export function streamEventData(agent: string, record: ShownRecord): string {
  return (
    `{"record_id":"${record.hash}","payload":${text(record.body)},"agent":"${agent}","seq":${record.seq},` +
    `"type":"${record.type}",${clock(record.hlc)},"content_hash":"${record.hash}",` +
    `"parent_hash":"${record.prev}"}`
  )
}

/** `AgentCreated` (src/wire/agents.ts) as text. */
export function agentCreated(agent: ShownAgent): string {
  return (
    `{"agent_id":"${agent.name}","name":"${memberName(agent)}","zone":"${agent.zone}","public_key":"${agent.publicKey}",` +
    `"strand":"${agent.strand}","created_at_ms":${agent.createdAtMs}}`
  )
}

/** The name of an agent without the id of its organism. */
function memberName({ name }: ShownAgent): string {
  return name.slice(name.lastIndexOf(':') + 1)
}

/** `AgentStatus` (src/wire/agents.ts) as text. `strandBytes` counts the bytes of bodies. */
export function agentStatus(agent: ShownAgent, head: ShownHead, strandBytes: number): string {
  return (
    `{"agent_id":"${agent.name}","zone":"${agent.zone}","record_count":${head.seq},"chain_head":"${head.hash}",` +
    `"public_key":"${agent.publicKey}","strand":"${agent.strand}",${clock(head.hlc)},` +
    `"bytes":${strandBytes},"created_at_ms":${agent.createdAtMs},"imported_records":${agent.importedRecords ?? 0}}`
  )
}

/**
 * `ChainHead` (src/wire/agents.ts) as text. `record_count` excludes genesis, so that it equals the last seq.
 */
export function chainHead(agent: string, head: ShownHead): string {
  return (
    `{"agent_id":"${agent}","chain_head":"${head.hash}","hash":"sha256:${head.hash}","seq":${head.seq},` +
    `"record_count":${head.seq},${clock(head.hlc)},"signature":"${head.signature}"}`
  )
}

/** The answer to a change of zone, with its record. */
export function zoneChanged(agent: string, zone: Zone, { seq, hash }: { seq: number; hash: string }): string {
  return `{"agent_id":"${agent}","zone":"${zone}","seq":${seq},"record_id":"${hash}"}`
}

/** The answer to a key rotation, with its record. */
export function keyRotated(
  agent: string,
  publicKey: string,
  { seq, hash }: { seq: number; hash: string },
): string {
  return `{"agent_id":"${agent}","public_key":"${publicKey}","seq":${seq},"record_id":"${hash}"}`
}

/** The answer to a delete, restore or erase. `recordSeq` is the seq of the `sys/…` record. */
export function mutationDone(
  recordId: string,
  state: 'deleted' | 'active' | 'erased',
  recordSeq: number,
): string {
  return `{"record_id":"${recordId}","state":"${state}","seq":${recordSeq}}`
}

/** The answer to PUT …/policies: the new policies and the record of the change. */
export function policiesReplaced(
  agent: string,
  { policies, warnings }: { policies: readonly unknown[]; warnings: readonly string[] },
  { seq, hash }: { seq: number; hash: string },
): string {
  return JSON.stringify({ agent_id: agent, policies, warnings, seq, record_id: hash })
}

/** The answer to GET …/policies; `pending` are the policies of an open proposal. */
export function policiesShown(
  agent: string,
  policies: readonly unknown[],
  pending: { seq: number; policies: readonly unknown[]; effectiveAtMs?: number } | undefined,
): string {
  const proposed = pending && {
    proposal_id: proposalId(agent, pending.seq),
    policies: pending.policies,
    effective_at_ms: pending.effectiveAtMs ?? null,
  }
  return JSON.stringify({ agent_id: agent, policies, pending: proposed ?? null })
}

/** The beginning of a fault in the answer to a batch. Write responses never contain it. */
export const refusedInBatch = '{"error":'

/** The answer to a batch: write responses and faults in order. */
export function batchDone(results: readonly string[]): string {
  return `{"results":[${results.join(',')}]}`
}

/** A timestamp, and its milliseconds for programs that do not support HLCs. */
function clock(hlc: Hlc): string {
  return `"timestamp_hlc":"${formatHlc(hlc)}","timestamp_ms":${hlc.ms}`
}

function seal(record: ShownRecord): string {
  if (record.signature === undefined) return `"signature":null,"sealed_by":${record.sealedBy ?? 'null'}`
  return `"signature":"${hex(record.signature)}"`
}

function hex(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('hex')
}

function text(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('utf8')
}
