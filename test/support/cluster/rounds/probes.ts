import { setTimeout as pause } from 'node:timers/promises'
import { pick } from '../../../../scripts/crash-loop/seeded-random.mjs'
import { shardOf } from '../../../../dist/src/strand/placement.js'
import { chainAgents } from './chains.js'
import { type LoadAnswer, type LoadRequest, requestNode } from './cluster-client.js'
import type { SupervisedNode } from './supervised-node.js'
import { shardCount } from './three-nodes.js'
import type { LoadParts } from './writes.js'

/** The shard that decides whether a key is valid. */
const shardOfKeys = 0

/** Interval of the requests to each node, whether it serves or not, milliseconds. */
const INTERVAL_MS = 100
/** Pending requests to a node at most. */
const PENDING_MAX = 200
/** Time limit of a request, milliseconds: longer than a node is stopped. */
const TIMEOUT_MS = 8_000

/** A request, and a check of its answer, if there is one. */
interface Probe {
  request: LoadRequest
  /** The shard whose owner answers 200, if nodes have no links. */
  shard: number
  check(answer: LoadAnswer): void
}

/**
 * Sends requests to one node, whatever happens to it, about things that may have changed elsewhere: the ends
 * of strands, revoked credentials, and erased records. The node may answer nothing, or the truth.
 */
export async function probes(
  parts: LoadParts,
  node: Pick<SupervisedNode, 'url' | 'life' | 'hasLogged'>,
): Promise<void> {
  const pending = new Set<Promise<void>>()
  while (!parts.stopped()) {
    await pause(INTERVAL_MS)
    const { url, life } = node
    if (url === undefined || pending.size >= PENDING_MAX) continue
    const probe = draw(parts)
    const sentAtMs = performance.now()
    const sent = requestNode(url, probe.request, TIMEOUT_MS).then((answer) => {
      pending.delete(sent)
      // With links, any node answers for the owner. A node that has transferred a shard may own it again.
      const isOwner =
        answer?.status === 200 && !parts.linked && !node.hasLogged('a shard moves to another node')
      if (isOwner && node.life === life) parts.known.served({ life, shard: probe.shard }, sentAtMs)
      if (answer !== undefined && answer.status !== 503) probe.check(answer)
    })
    pending.add(sent)
  }
  await Promise.all(pending)
}

function draw(parts: LoadParts): Probe {
  const { known, random } = parts
  const drawn = random()
  const revoked = known.revoked.at(-1)
  if (drawn < 0.4 && revoked !== undefined) return withRevoked(parts, revoked)
  const erased = known.erased.at(-1)
  if (drawn < 0.5 && erased !== undefined) return ofErased(parts, erased)
  const agent = pick(random, chainAgents)
  return drawn < 0.53 ? exported(parts, agent) : headOf(parts, agent)
}

function headOf({ known }: LoadParts, agent: string): Probe {
  const floor = known.at(agent)
  return {
    shard: shardOf(agent, shardCount),
    request: { method: 'GET', path: `/v1/agents/${agent}/head` },
    check({ status, body }) {
      if (status === 200) known.read('A node', { agent, seq: body.seq, floor })
      else known.breaches.push(`The head of ${agent} was answered ${status} ${body?.code}`)
    },
  }
}

function exported({ known }: LoadParts, agent: string): Probe {
  const floor = known.at(agent)
  return {
    shard: shardOf(agent, shardCount),
    request: { method: 'GET', path: `/v1/strand/export?agent=${agent}&from_seq=${Math.max(0, floor - 1)}` },
    check({ status, text }) {
      const [first = ''] = text.split('\n')
      if (status === 200) known.read('An export', { agent, seq: JSON.parse(first).to_seq, floor })
    },
  }
}

function withRevoked({ known }: LoadParts, key: string): Probe {
  return {
    shard: shardOfKeys,
    request: { method: 'GET', path: '/v1/whoami', key },
    check({ status }) {
      if (status !== 401) known.breaches.push(`A node answered ${status} to a revoked credential`)
    },
  }
}

function ofErased({ known }: LoadParts, { agent, hash }: { agent: string; hash: string }): Probe {
  return {
    shard: shardOf(agent, shardCount),
    request: { method: 'GET', path: `/v1/agents/${agent}/records/${hash}` },
    check({ status, body }) {
      if (status !== 200 || body.erased !== true)
        known.breaches.push(`A node showed an erased record: ${status} ${JSON.stringify(body)}`)
    },
  }
}
