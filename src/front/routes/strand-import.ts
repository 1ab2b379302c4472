import { Type } from 'typebox'
import { memberAddress, memberOrganism } from '../../auth/namespace.js'
import { authMember, isServerAgent } from '../../strand/organism-id.js'
import { refuse, refuseCoding, type Refusal } from '../../base/errors.js'
import { seedBytes } from '../../strand/keys.js'
import { StrandImported } from '../../wire/strand.js'
import { agentParameter, agentRefusal, authorOf, faultyParameter } from './parameters.js'
import type { ImportRequest, ImportRoute, RouteRequest } from './route.js'

/** POST /v1/strand/import: imports an export (docs/adr/0022-import.md). */
export const importRoute = (defaultAgent: string): ImportRoute => ({
  kind: 'import',
  method: 'post',
  path: '/v1/strand/import',
  scope: 'agents:admin',
  errors: [
    'unsupported_media_type',
    'agent_exists',
    'organism_not_found',
    'key_in_use',
    'import_conflict',
    'import_rejected',
  ],
  docs: {
    summary: 'Import an export of a strand and verify every record; an interrupted import is resumed',
    tag: 'Strands',
    query: {
      hold: Type.Boolean({
        default: false,
        description: 'More of the strand will be imported: the agent does not accept writes yet',
      }),
    },
    request: {
      mediaType: 'application/x-ndjson',
      description: 'The unchanged lines of GET /v1/strand/export; gzip by Content-Encoding',
    },
    answers: { 200: StrandImported },
  },
  toImport: (request) => toImport(request, defaultAgent),
})

function toImport(request: RouteRequest, defaultAgent: string): ImportRequest | Refusal {
  const { contentType, contentEncoding, agentSeed } = request.headers
  if (!isNdjson(contentType)) {
    return refuse('unsupported_media_type', 'Expected Content-Type application/x-ndjson')
  }
  if (contentEncoding !== '' && contentEncoding !== 'identity' && contentEncoding !== 'gzip') {
    return refuseCoding('gzip, identity', 'Expected Content-Encoding gzip or identity')
  }
  const hold = request.query.get('hold') ?? 'false'
  if (hold !== 'true' && hold !== 'false') return faultyParameter('?hold', 'Expected true or false')
  if (agentSeed !== '' && !seedPattern.test(agentSeed)) {
    return refuse('validation_failed', `Expected Strandfast-Agent-Seed to have ${seedBytes * 2} hex digits`)
  }
  const { scopes, agents } = request.principal
  const organisms = scopes.has('admin:*') || scopes.has('admin:organisms')
  return {
    gzip: contentEncoding === 'gzip',
    hold: hold === 'true',
    agents,
    author: authorOf(request),
    ...(agentSeed !== '' && { seed: Buffer.from(agentSeed, 'hex') }),
    agentRefusal(agent) {
      if (typeof agentParameter(agent) !== 'string') {
        return refuse('import_rejected', 'The agent name in the manifest is invalid on this server')
      }
      const organismId = memberOrganism(agent)
      const ofNamespace = organismId !== undefined && agent === memberAddress(organismId, authMember)
      if (ofNamespace || isServerAgent(agent) || agent === defaultAgent) return ofServer
      const refusal = agentRefusal(request, agent)
      if (refusal !== undefined || organisms || organismId === undefined) return refusal
      return refuse('forbidden', 'Importing an agent of an organism requires the scope admin:organisms')
    },
  }
}

const ofServer = refuse(
  'forbidden',
  'The strands of the server, of the default agent and of auth namespaces cannot be imported: restore a backup',
)

const seedPattern = new RegExp(`^[0-9a-f]{${seedBytes * 2}}$`, 'i')

function isNdjson(contentType: string): boolean {
  const mediaType = contentType.split(';')[0]?.trim().toLowerCase() ?? ''
  return ['application/x-ndjson', 'application/ndjson', 'application/jsonl'].includes(mediaType)
}
