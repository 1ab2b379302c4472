import { Type } from 'typebox'
import type { Refusal } from '../base/errors.js'
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
      const located = await locate(withAccess(request, { kind: 'strandLocate', agent }), context)
      if ('code' in located) return located
      const view = viewOf(located)
      const note = await sign(agent, { size: view.size, root: await context.read.treeRoot(view) }, context)
      return typeof note === 'string'
        ? { status: 200, body: note, contentType: 'text/plain; charset=utf-8' }
        : note
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
  const located = await locate(withAccess(request, { kind: 'strandLocate', agent, hash }), context)
  if ('code' in located) return located
  const seq = located.seq ?? 0
  const view = viewOf(located)
  const { root, path } = await context.read.inclusion(view, seq)
  const checkpoint = await sign(agent, { size: view.size, root }, context)
  if (typeof checkpoint !== 'string') return checkpoint
  return json(200, { agent, hash, seq, tree_size: view.size, root, path, checkpoint })
}

async function locate(command: StrandLocate, context: RouteContext): Promise<LocatedOutcome | Refusal> {
  const outcome = await context.ask(command.agent, command)
  return outcome.kind === 'located' ? outcome : unexpected(outcome)
}

function viewOf(located: LocatedOutcome): StrandView {
  return { shard: located.shard, agentNo: located.agentNo, size: located.headSeq + 1 }
}

async function sign(
  agent: string,
  { size, root }: { size: number; root: string },
  context: RouteContext,
): Promise<string | Refusal> {
  const answer = answerOf(await context.ask(agent, { kind: 'checkpointSign', agent, size, root }))
  return 'code' in answer ? answer : answer.body
}

export const proofRoutes = (defaultAgent: string) => [checkpointRoute(defaultAgent), proofRoute(defaultAgent)]
