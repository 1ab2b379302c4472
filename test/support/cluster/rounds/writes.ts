import { setTimeout as pause } from 'node:timers/promises'
import { freeAgent, type Operation, OperationSource } from '../../../../scripts/crash-loop/operations.mjs'
import type { Answered, ClusterClient } from './cluster-client.js'
import type { Known } from './known.js'

/** A call of the load, as the checks of the crash loop read it: the request, and the answer if there was one. */
export interface Entry {
  operation: Operation
  answer?: Pick<Answered, 'status' | 'body'>
}

/** What the parts of a load work with. */
export interface LoadParts {
  client: ClusterClient
  known: Known
  journal: Entry[]
  random: () => number
  /** Begins the names and ids of what it writes. */
  prefix: string
  stopped: () => boolean
  /** Whether all nodes answer. */
  linked: boolean
}

/** How long a client rests between two calls, milliseconds: the load is there for its order, not for its mass. */
export const REST_MS = 25

/** Appends, batches, ingest, deletes, restores and new agents, half of them under an Idempotency-Key. */
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
    for (const { agent, seq } of toldBy(operation, answer))
      known.wrote(`${kind} ${operation.id}`, { agent, seq, floor: floors.get(agent) ?? -1 })
    learn(source, operation, body)
    await pause(REST_MS)
  }
}

/** The last records of strands that an answer tells of. */
function toldBy({ kind, agents }: Operation, { body }: Answered): { agent: string; seq: number }[] {
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

/** Later calls can change records whose writes were answered, but never again one whose change was not answered. */
function learn(source: OperationSource, { kind, agents, target }: Operation, body: Answered['body']): void {
  if (kind === 'write' && agents[0] === freeAgent)
    source.targets.push({ hash: body.content_hash, seq: body.seq, deleted: false })
  else if (target !== undefined) source.targets.push({ ...target, deleted: !target.deleted })
}
