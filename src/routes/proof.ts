import { Type } from 'typebox'
import { refuse, type Refusal } from '../base/errors.js'
import type { LocatedOutcome, StrandLocate } from '../protocol/messages.js'
import { InclusionProof } from '../wire/strand.js'
import { answerOf, json, unexpected } from './answers.js'
import { hashParameter, reachableAgent, withAccess } from './parameters.js'
import type { Answer, HandlerRoute, RouteContext, RouteRequest, StrandView } from './route.js'

/** GET /v1/strand/checkpoint: the signed tree head of a strand (C2SP tlog-checkpoint). */
function checkpointRoute(defaultAgent: string): HandlerRoute {
  return {
    kind: 'handler',
    method: 'get',
    path: '/v1/strand/checkpoint',
    scope: 'records:read',
    users: true,
    bodyBytesMax: 0,
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
      return inForce(async () => {
        const located = await locate(command, context)
        if ('code' in located) return located
        const view = viewOf(located)
        const note = await signTreeHead(
          agent,
          { size: view.size, root: await context.read.treeRoot(view) },
          context,
        )
        return typeof note === 'string'
          ? { status: 200, body: note, contentType: 'text/plain; charset=utf-8' }
          : note
      })
    },
  }
}

/** GET /v1/strand/proof: that a record is in a strand, without the strand (RFC 6962, 2.1.1). */
function proofRoute(defaultAgent: string): HandlerRoute {
  return {
    kind: 'handler',
    method: 'get',
    path: '/v1/strand/proof',
    scope: 'records:read',
    users: true,
    bodyBytesMax: 0,
    docs: {
      summary: 'Inclusion proof of a record',
      tag: 'Strands',
      query: {
        agent: Type.String({ default: defaultAgent }),
        hash: Type.String({ description: 'The record, bare hex or with sha256:' }),
      },
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
  return inForce(async () => {
    const located = await locate(command, context)
    if ('code' in located) return located
    const seq = located.seq ?? 0
    const view = viewOf(located)
    const { root, path } = await context.read.inclusion(view, seq)
    const checkpoint = await signTreeHead(agent, { size: view.size, root }, context)
    if (typeof checkpoint !== 'string') return checkpoint
    return json(200, { agent, hash, seq, tree_size: view.size, root, path, checkpoint })
  })
}

/** How often a tree head is taken again whose key was rotated before it was signed. */
const TRIES_MAX = 3

/** What `attempt` gives, once a key signs that is in force; a rotation between its steps makes it begin anew. */
async function inForce(attempt: () => Promise<Answer | Refusal | undefined>): Promise<Answer | Refusal> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const answer = await attempt()
    if (answer !== undefined) return answer
  }
  return refuse('overloaded', 'Expected a key that stays for a moment', { retryAfterSecs: 1 })
}

async function locate(command: StrandLocate, context: RouteContext): Promise<LocatedOutcome | Refusal> {
  const outcome = await context.ask(command.agent, command)
  return outcome.kind === 'located' ? outcome : unexpected(outcome)
}

function viewOf(located: LocatedOutcome): StrandView {
  return { shard: located.shard, agentNo: located.agentNo, size: located.headSeq + 1 }
}

/** The signed note of a tree head; undefined where the key of that tree head has been rotated since. */
export async function signTreeHead(
  agent: string,
  { size, root }: { size: number; root: string },
  context: RouteContext,
): Promise<string | Refusal | undefined> {
  const outcome = await context.ask(agent, { kind: 'checkpointSign', agent, size, root })
  if (outcome.kind === 'done') return undefined
  const answer = answerOf(outcome)
  return 'code' in answer ? answer : answer.body
}

export const proofRoutes = (defaultAgent: string) => [checkpointRoute(defaultAgent), proofRoute(defaultAgent)]
