import { setTimeout as pause } from 'node:timers/promises'
import { pick } from '../../../../scripts/crash-loop/seeded-random.mjs'
import { shardOf } from '../../../../dist/src/strand/placement.js'
import { chainAgents } from './chains.js'
import { type Answered, type Ask, askNode } from './cluster-client.js'
import type { SupervisedNode } from './supervised-node.js'
import { shardCount } from './three-nodes.js'
import type { LoadParts } from './writes.js'

/** That which says whether a key is in force. */
const shardOfKeys = 0

/** How often each node is asked, whether it serves or not, milliseconds. */
const EVERY_MS = 50
/** Requests to a node that wait for it at most. */
const WAITING_MAX = 200
/** How long they wait: longer than a node is stopped. */
const PATIENCE_MS = 8_000

/** A question, and what must hold of the answer where there is one. */
interface Probe {
  ask: Ask
  /** Whose owner answers it 200, where nodes have no links. */
  shard: number
  check(answer: Answered): void
}

/**
 * Asks one node, whatever is done to it, for what may have changed elsewhere: where strands end, with credentials that were
 * revoked, for what was erased. It may answer nothing, or what is true.
 */
export async function probes(
  parts: LoadParts,
  node: Pick<SupervisedNode, 'url' | 'life' | 'says'>,
): Promise<void> {
  const waiting = new Set<Promise<void>>()
  while (!parts.stopped()) {
    await pause(EVERY_MS)
    const { url, life } = node
    if (url === undefined || waiting.size >= WAITING_MAX) continue
    const probe = draw(parts)
    const askedAtMs = performance.now()
    const asked = askNode(url, probe.ask, PATIENCE_MS).then((answer) => {
      waiting.delete(asked)
      // With links, who does not own the shard answers for the one that does. Who has given one up may have it again.
      const isOwner = answer?.status === 200 && !parts.linked && !node.says('a shard moves to another node')
      if (isOwner && node.life === life) parts.known.served({ life, shard: probe.shard }, askedAtMs)
      if (answer !== undefined && answer.status !== 503) probe.check(answer)
    })
    waiting.add(asked)
  }
  await Promise.all(waiting)
}

function draw(parts: LoadParts): Probe {
  const { known, random } = parts
  const dice = random()
  const revoked = known.revoked.at(-1)
  if (dice < 0.4 && revoked !== undefined) return withRevoked(parts, revoked)
  const erased = known.erased.at(-1)
  if (dice < 0.5 && erased !== undefined) return ofErased(parts, erased)
  const agent = pick(random, chainAgents)
  return dice < 0.53 ? exported(parts, agent) : headOf(parts, agent)
}

function headOf({ known }: LoadParts, agent: string): Probe {
  const floor = known.at(agent)
  return {
    shard: shardOf(agent, shardCount),
    ask: { method: 'GET', path: `/v1/agents/${agent}/head` },
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
    ask: { method: 'GET', path: `/v1/strand/export?agent=${agent}&from_seq=${Math.max(0, floor - 1)}` },
    check({ status, text }) {
      const [first = ''] = text.split('\n')
      if (status === 200) known.read('An export', { agent, seq: JSON.parse(first).to_seq, floor })
    },
  }
}

function withRevoked({ known }: LoadParts, key: string): Probe {
  return {
    shard: shardOfKeys,
    ask: { method: 'GET', path: '/v1/whoami', key },
    check({ status }) {
      if (status !== 401) known.breaches.push(`A node answered ${status} to what had been revoked`)
    },
  }
}

function ofErased({ known }: LoadParts, { agent, hash }: { agent: string; hash: string }): Probe {
  return {
    shard: shardOf(agent, shardCount),
    ask: { method: 'GET', path: `/v1/agents/${agent}/records/${hash}` },
    check({ status, body }) {
      if (status !== 200 || body.erased !== true)
        known.breaches.push(`A node showed a record that had been erased: ${status} ${JSON.stringify(body)}`)
    },
  }
}
