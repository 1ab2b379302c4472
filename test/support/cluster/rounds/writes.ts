import { setTimeout as pause } from 'node:timers/promises'
import { freeAgent, type Operation, OperationSource } from '../../../../scripts/crash-loop/operations.mjs'
import type { LoadAnswer, ClusterClient } from './cluster-client.js'
import type { Known } from './known.js'

/**
 * A call of the load, in the form that the checks of the crash loop read: the request, and its answer, if
 * there is one.
 */
export interface Entry {
  operation: Operation
  answer?: Pick<LoadAnswer, 'status' | 'body'>
}

/** The parts that a load works with. */
export interface LoadParts {
  client: ClusterClient
  known: Known
  journal: Entry[]
  random: () => number
  /** Prefix of the names and ids that it writes. */
  prefix: string
  stopped: () => boolean
  /** Whether nodes have links, so that all of them answer. */
  linked: boolean
}

/** Pause of a client between two calls, milliseconds: the order of the load matters, not its volume. */
export const REST_MS = 25

/** Appends, batches, ingests, deletions, restores and new agents, half of them with an Idempotency-Key. */
export async function writes(parts: LoadParts, width: number): Promise<void> {
  const { random, prefix } = parts
  const source = new OperationSource(random, prefix)
  await Promise.all(Array.from({ length: width }, () => writeOn(parts, source)))
}

async function writeOn(
  { client, known, journal, stopped }: LoadParts,
  source: OperationSource,
): Promise<void> {
  while (!stopped()) {
    const operation = source.next()
    const entry: Entry = { operation }
    journal.push(entry)
    const floors = new Map(operation.agents.map((agent) => [agent, known.at(agent)]))
    const { keyed, request, kind } = operation
    const answer = keyed ? await client.insist(request) : await client.once(request)
    if (answer === undefined) continue
    const { status, body } = answer
    entry.answer = { status, body }
    if (status >= 300) continue
    for (const { agent, seq } of lastRecords(operation, answer))
      known.wrote(`${kind} ${operation.id}`, { agent, seq, floor: floors.get(agent) ?? -1 })
    learn(source, operation, body)
    await pause(REST_MS)
  }
}

/** The last records of strands, according to an answer. */
function lastRecords({ kind, agents }: Operation, { body }: LoadAnswer): { agent: string; seq: number }[] {
  if (kind === 'batch') return body.results
  if (kind === 'ingest') return [{ agent: agents[0] ?? '', seq: body.last_seq }]
  if (kind === 'ingestMany')
    return Object.entries<{ last_seq: number }>(body.agents).map(([agent, { last_seq: seq }]) => ({
      agent,
      seq,
    }))
  if (kind === 'agent') return []
  return [{ agent: agents[0] ?? '', seq: body.seq }]
}

/**
 * Makes acknowledged writes available as targets of later changes, but never a record whose change was not
 * answered.
 */
function learn(source: OperationSource, { kind, agents, target }: Operation, body: LoadAnswer['body']): void {
  if (kind === 'write' && agents[0] === freeAgent)
    source.targets.push({ hash: body.content_hash, seq: body.seq, deleted: false })
  else if (target !== undefined) source.targets.push({ ...target, deleted: !target.deleted })
}
