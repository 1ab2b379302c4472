import { Type } from 'typebox'
import { refuse, type Refusal } from '../../base/errors.js'
import type { LocatedOutcome, StrandLocate } from '../../protocol/agent-messages.js'
import { second } from '../../wire/example-values.js'
import { ConsistencyProof } from '../../wire/server-log.js'
import { InclusionProof } from '../../wire/strand.js'
import { answerOf, json, unexpected } from './answers.js'
import { faultyParameter, hashParameter, integerQuery, reachableAgent, withAccess } from './parameters.js'
import type { Answer, HandlerRoute, RouteContext, RouteRequest, StrandView } from './route.js'

/** GET /v1/strand/checkpoint: the signed tree head of a strand (C2SP tlog-checkpoint). */
function checkpointRoute(defaultAgent: string): HandlerRoute {
  return {
    kind: 'handler',
    method: 'get',
    path: '/v1/strand/checkpoint',
    scope: 'records:read',
    users: true,
    errors: ['import_open'],
    docs: {
      summary: 'Signed tree head of a strand',
      tag: 'Strands',
      query: { agent: Type.String({ default: defaultAgent }) },
      answers: { 200: { mediaType: 'text/plain', description: 'C2SP signed note' } },
    },
    async handle(request, context) {
      const agent = reachableAgent(request, request.query.get('agent') ?? defaultAgent)
      if (typeof agent !== 'string') return agent
      const command = withAccess(request, { kind: 'strandLocate' as const, agent })
      return withCurrentKey(async () => {
        const located = await locate(command, context)
        if ('code' in located) return located
        const view = viewOf(located)
        const note = await signTreeHead(
          agent,
          { size: view.size, root: await context.read('treeRoot', view) },
          context,
        )
        return typeof note === 'string'
          ? { status: 200, body: note, contentType: 'text/plain; charset=utf-8' }
          : note
      })
    },
  }
}

/** GET /v1/strand/proof: proves that a record is in a strand, without the strand (RFC 6962, 2.1.1). */
function proofRoute(defaultAgent: string): HandlerRoute {
  return {
    kind: 'handler',
    method: 'get',
    path: '/v1/strand/proof',
    scope: 'records:read',
    users: true,
    errors: ['import_open'],
    docs: {
      summary: 'Inclusion proof of a record',
      tag: 'Strands',
      query: {
        agent: Type.String({ default: defaultAgent }),
        hash: Type.String({ description: 'The record, bare hex or with sha256:', example: second }),
      },
      required: ['hash'],
      answers: { 200: InclusionProof },
    },
    handle: (request, context) => prove(request, { context, defaultAgent }),
  }
}

async function prove(
  request: RouteRequest,
  { context, defaultAgent }: { context: RouteContext; defaultAgent: string },
): Promise<Answer | Refusal> {
  const agent = reachableAgent(request, request.query.get('agent') ?? defaultAgent)
  if (typeof agent !== 'string') return agent
  const hash = hashParameter(request.query.get('hash') ?? undefined, '?hash')
  if (typeof hash !== 'string') return hash
  const command = withAccess(request, { kind: 'strandLocate' as const, agent, hash })
  return withCurrentKey(async () => {
    const located = await locate(command, context)
    if ('code' in located) return located
    const seq = located.seq ?? 0
    const view = viewOf(located)
    const { root, path } = await context.read('inclusion', { ...view, seq })
    const checkpoint = await signTreeHead(agent, { size: view.size, root }, context)
    if (typeof checkpoint !== 'string') return checkpoint
    return json(200, { agent, hash, seq, tree_size: view.size, root, path, checkpoint })
  })
}

/**
 * GET /v1/strand/consistency: proves that an older strand is a prefix of the current one (RFC 6962, 2.1.2).
 */
function consistencyRoute(defaultAgent: string): HandlerRoute {
  return {
    kind: 'handler',
    method: 'get',
    path: '/v1/strand/consistency',
    scope: 'records:read',
    users: true,
    docs: {
      summary: 'Consistency proof between two sizes of a strand',
      tag: 'Strands',
      query: {
        agent: Type.String({ default: defaultAgent }),
        from: Type.Integer({
          minimum: 1,
          description: 'Number of records of the older strand, including genesis',
        }),
        to: Type.Integer({ minimum: 1, description: 'Number of records of the newer strand; default: all' }),
      },
      required: ['from'],
      answers: { 200: ConsistencyProof },
    },
    async handle(request, context) {
      const agent = reachableAgent(request, request.query.get('agent') ?? defaultAgent)
      if (typeof agent !== 'string') return agent
      const located = await locate(withAccess(request, { kind: 'strandLocate' as const, agent }), context)
      if ('code' in located) return located
      const view = viewOf(located)
      const sizes = sizesOf(request, view.size)
      if ('code' in sizes) return sizes
      const proof = await consistencyBetween(view, sizes, context)
      const checkpoint = await signPastTreeHead(agent, { size: proof.to, root: proof.to_root }, context)
      if (typeof checkpoint !== 'string') return checkpoint
      const answer: ConsistencyProof = { agent, ...proof, checkpoint }
      return json(200, answer)
    },
  }
}

/** The two sizes of a consistency proof; 400 if they are not sizes of a tree of `size` records. */
export function sizesOf(request: RouteRequest, size: number): { from: number; to: number } | Refusal {
  const to = integerQuery(request, 'to', { min: 1, max: size, fallback: size })
  if (typeof to !== 'number') return to
  // 0 if absent, which is not a valid size.
  const from = integerQuery(request, 'from', { min: 1, max: to, fallback: 0 })
  if (typeof from !== 'number') return from
  return from === 0 ? faultyParameter('?from', `Expected a whole number from 1 to ${to}`) : { from, to }
}

/** The members of a consistency proof that come from the tree. */
export async function consistencyBetween(
  view: StrandView,
  { from, to }: { from: number; to: number },
  { read }: RouteContext,
): Promise<{ from: number; to: number; path: string[]; from_root: string; to_root: string }> {
  const { path, fromRoot, toRoot } = await read('consistency', { ...view, size: to, from })
  return { from, to, path, from_root: fromRoot, to_root: toRoot }
}

/** How often signing is retried if the key was rotated in between. */
const TRIES_MAX = 3

/** The answer of `attempt`, which is repeated if the key was rotated between its steps (undefined). */
async function withCurrentKey(
  attempt: () => Promise<Answer | Refusal | undefined>,
): Promise<Answer | Refusal> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const answer = await attempt()
    if (answer !== undefined) return answer
  }
  return refuse('overloaded', 'The key of this agent is being rotated, try again', { retryAfterSecs: 1 })
}

/** Locates a strand; 403 for users without a policy that allows reading it, 404 agent_not_found. */
export async function locate(
  command: StrandLocate,
  context: RouteContext,
): Promise<LocatedOutcome | Refusal> {
  const outcome = await context.request(command.agent, command)
  return outcome.kind === 'located' ? outcome : unexpected(outcome)
}

export function viewOf(located: LocatedOutcome): StrandView {
  return { shard: located.shard, agentNo: located.agentNo, size: located.headSeq + 1 }
}

interface TreeHead {
  size: number
  root: string
}

/** The signed note of a tree head; undefined if the key of that tree head was rotated since. */
export async function signTreeHead(
  agent: string,
  head: TreeHead,
  context: RouteContext,
): Promise<string | Refusal | undefined> {
  const outcome = await context.request(agent, { kind: 'checkpointSign', agent, ...head, by: 'then' })
  if (outcome.kind === 'done') return undefined
  const answer = answerOf(outcome)
  return 'code' in answer ? answer : answer.body
}

/**
 * The signed note of a past tree head, signed with the current key (docs/FORMAT.md, A checkpoint of the
 * past).
 */
export async function signPastTreeHead(
  agent: string,
  head: TreeHead,
  context: RouteContext,
): Promise<string | Refusal> {
  const outcome = await context.request(agent, { kind: 'checkpointSign', agent, ...head, by: 'now' })
  const answer = answerOf(outcome)
  return 'code' in answer ? answer : answer.body
}

export const proofRoutes = (defaultAgent: string) => [
  checkpointRoute(defaultAgent),
  proofRoute(defaultAgent),
  consistencyRoute(defaultAgent),
]
