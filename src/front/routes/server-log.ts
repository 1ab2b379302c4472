import { Type } from 'typebox'
import { refuse, type Refusal } from '../../base/errors.js'
import { asBuffer } from '../../base/bytes.js'
import { logAgent } from '../../strand/organism-id.js'
import type { LocatedOutcome } from '../../protocol/messages.js'
import { LogConsistency, LoggedHeadProof } from '../../wire/server-log.js'
import { json, unexpected } from './answers.js'
import { integerQuery, reachableAgent, withAccess } from './parameters.js'
import { consistencyBetween, locate, signTreeHead, sizesOf, viewOf } from './proof.js'
import type { Answer, HandlerRoute, RouteContext, RouteRequest } from './route.js'

/** Who may read of any strand may see how far the log is: it names none. */
const common = { kind: 'handler', method: 'get', scope: 'records:read', users: true } as const

/** GET /v1/log/checkpoint: the signed tree head of the server log, which a witness keeps. */
const checkpoint: HandlerRoute = {
  ...common,
  path: '/v1/log/checkpoint',
  errors: ['not_found'],
  docs: {
    summary: 'Signed tree head of the log of all strand heads',
    tag: 'Server log',
    answers: { 200: { mediaType: 'text/plain', description: 'C2SP signed note' } },
  },
  async handle(_request, context) {
    const located = await locateLog(context)
    if ('code' in located) return located
    const view = viewOf(located)
    const note = await signed(view.size, await context.read('treeRoot', view), context)
    return typeof note === 'string'
      ? { status: 200, body: note, contentType: 'text/plain; charset=utf-8' }
      : note
  },
}

/** GET /v1/log/consistency: that the log of then is the beginning of the log of now. */
const consistency: HandlerRoute = {
  ...common,
  path: '/v1/log/consistency',
  errors: ['not_found'],
  docs: {
    summary: 'Consistency proof between two sizes of the log',
    tag: 'Server log',
    query: {
      from: Type.Integer({ minimum: 1, description: 'Records of the older log' }),
      to: Type.Integer({ minimum: 1, description: 'Records of the newer log; all when absent' }),
    },
    required: ['from'],
    answers: { 200: LogConsistency },
  },
  async handle(request, context) {
    const located = await locateLog(context)
    if ('code' in located) return located
    const view = viewOf(located)
    const sizes = sizesOf(request, view.size)
    if ('code' in sizes) return sizes
    const proof = await consistencyBetween(view, sizes, context)
    const note = await signed(proof.to, proof.to_root, context)
    if (typeof note !== 'string') return note
    const answer: LogConsistency = { ...proof, checkpoint: note }
    return json(200, answer)
  },
}

/** GET /v1/log/proof: the newest head of a strand that the log tells of, or told of when it had `at` records. */
const proof: HandlerRoute = {
  ...common,
  path: '/v1/log/proof',
  errors: ['not_found', 'head_not_logged'],
  docs: {
    summary:
      'A head of a strand that the log told of, with the proof that it was told (not that it was told last)',
    tag: 'Server log',
    query: {
      agent: Type.String({ description: 'The agent whose strand it is', example: 'sensors' }),
      at: Type.Integer({ minimum: 1, description: 'Records of the log that count; all when absent' }),
    },
    required: ['agent'],
    answers: { 200: LoggedHeadProof },
  },
  handle: prove,
}

async function prove(request: RouteRequest, context: RouteContext): Promise<Answer | Refusal> {
  const agent = reachableAgent(request, request.query.get('agent') ?? undefined)
  if (typeof agent !== 'string') return agent
  const located = await locate(withAccess(request, { kind: 'strandLocate', agent }), context)
  if ('code' in located) return located
  const log = await locateLog(context)
  if ('code' in log) return log
  const all = viewOf(log)
  const size = integerQuery(request, 'at', { min: 1, max: all.size, fallback: all.size })
  if (typeof size !== 'number') return size
  const { strand } = located
  const found = await context.ask(logAgent, { kind: 'logFind', agent: logAgent, strand, size })
  if (found.kind !== 'headLogged') return unexpected(found)
  const view = { ...all, size }
  const { logSeq, head } = found
  const [{ root, path }, record] = await Promise.all([
    context.read('inclusion', { ...view, seq: logSeq }),
    lineOf(log, logSeq, context),
  ])
  const note = await signed(size, root, context)
  if (typeof note !== 'string') return note
  const tree = { tree_size: size, root, path, checkpoint: note }
  const about = { agent, strand, size: head.size, hash: head.hash }
  const place = { strand: log.strand, public_key: log.publicKey, seq: logSeq }
  return {
    status: 200,
    body: `${open(about)},"log":${open(place)},"record":${record},${JSON.stringify(tree).slice(1)}}`,
  }
}

/** The text of an object but its end. */
function open(value: object): string {
  return JSON.stringify(value).slice(0, -1)
}

/** The line that an export of the log has for a record. */
async function lineOf(log: LocatedOutcome, seq: number, { read }: RouteContext): Promise<string> {
  const { shard, agentNo, strand, publicKey } = log
  const place = { shard, agentNo, strand, publicKeys: [publicKey] }
  const page = await read('exportPage', { ...place, fromSeq: seq, toSeq: seq, bytesMax: 1 })
  return asBuffer(page.bytes).toString().trimEnd()
}

async function locateLog(context: RouteContext): Promise<LocatedOutcome | Refusal> {
  const located = await locate({ kind: 'strandLocate', agent: logAgent }, context)
  if (!('code' in located) || located.code !== 'agent_not_found') return located
  return refuse('not_found', 'Expected a server that keeps a log of its strand heads')
}

/** The key of the log never changes, so that it signs the tree heads of all times. */
async function signed(size: number, root: string, context: RouteContext): Promise<string | Refusal> {
  const note = await signTreeHead(logAgent, { size, root }, context)
  return note ?? refuse('internal_error', 'The key of the log changed, which it never does')
}

export const serverLogRoutes = [checkpoint, consistency, proof]
