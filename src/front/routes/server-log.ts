import { Type } from 'typebox'
import { refuse, type Refusal } from '../../base/errors.js'
import { asBuffer } from '../../base/bytes.js'
import { logAgent } from '../../strand/organism-id.js'
import type { LocatedOutcome } from '../../protocol/agent-messages.js'
import { LogConsistency, LoggedHeadProof } from '../../wire/server-log.js'
import { json, unexpected } from './answers.js'
import { integerQuery, reachableAgent, withAccess } from './parameters.js'
import { consistencyBetween, locate, signTreeHead, sizesOf, viewOf } from './proof.js'
import type { Answer, HandlerRoute, RouteContext, RouteRequest } from './route.js'

/** The checkpoint and size of the log are readable with any read access, because they name no strand. */
const common = { kind: 'handler', method: 'get', scope: 'records:read', users: true } as const

/** GET /v1/log/checkpoint: the signed tree head of the server log, for witnesses. */
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

/** GET /v1/log/consistency: proves that an older log is a prefix of the current one. */
const consistency: HandlerRoute = {
  ...common,
  path: '/v1/log/consistency',
  errors: ['not_found'],
  docs: {
    summary: 'Consistency proof between two sizes of the log',
    tag: 'Server log',
    query: {
      from: Type.Integer({ minimum: 1, description: 'Number of records of the older log' }),
      to: Type.Integer({ minimum: 1, description: 'Number of records of the newer log; default: all' }),
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

/** GET /v1/log/proof: the newest head of a strand in the log, or in its first `at` records. */
const proof: HandlerRoute = {
  ...common,
  path: '/v1/log/proof',
  errors: ['not_found', 'head_not_logged'],
  docs: {
    summary:
      'A logged head of a strand, with the proof that it is in the log (not that it is the latest one)',
    tag: 'Server log',
    query: {
      agent: Type.String({ description: 'The agent of the strand', example: 'sensors' }),
      at: Type.Integer({ minimum: 1, description: 'Number of records of the log to use; default: all' }),
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
  const found = await context.request(logAgent, { kind: 'logFind', agent: logAgent, strand, size })
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
  const loggedHead = { agent, strand, size: head.size, hash: head.hash }
  const logRecord = { strand: log.strand, public_key: log.publicKey, seq: logSeq }
  return {
    status: 200,
    body: `${unclosed(loggedHead)},"log":${unclosed(logRecord)},"record":${record},${JSON.stringify(tree).slice(1)}}`,
  }
}

/** The JSON of an object without its closing brace. */
function unclosed(value: object): string {
  return JSON.stringify(value).slice(0, -1)
}

/** The line of a record in an export of the log. */
async function lineOf(log: LocatedOutcome, seq: number, { read }: RouteContext): Promise<string> {
  const { shard, agentNo, strand, publicKey } = log
  const range = { fromSeq: seq, toSeq: seq, bytesMax: 1 }
  const page = await read('exportPage', { shard, agentNo, strand, publicKeys: [publicKey], ...range })
  return asBuffer(page.bytes).toString().trimEnd()
}

async function locateLog(context: RouteContext): Promise<LocatedOutcome | Refusal> {
  const located = await locate({ kind: 'strandLocate', agent: logAgent }, context)
  if (!('code' in located) || located.code !== 'agent_not_found') return located
  return refuse('not_found', 'This server has no log of strand heads')
}

/** The key of the log never changes, so it can sign tree heads of any time. */
async function signed(size: number, root: string, context: RouteContext): Promise<string | Refusal> {
  const note = await signTreeHead(logAgent, { size, root }, context)
  return (
    note ?? refuse('internal_error', 'The key of the server log has changed, which is a bug of the server')
  )
}

export const serverLogRoutes = [checkpoint, consistency, proof]
