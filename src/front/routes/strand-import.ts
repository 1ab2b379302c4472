import { Type } from 'typebox'
import { memberAddress, memberOrganism } from '../../auth/namespace.js'
import { authMember, isServerAgent } from '../../strand/organism-id.js'
import { refuse, refuseCoding, type Refusal } from '../../base/errors.js'
import { seedBytes } from '../../strand/keys.js'
import { StrandImported } from '../../wire/strand.js'
import { agentParameter, agentRefusal, faultyParameter, isUnlimitedAdmin } from './parameters.js'
import type { ImportRequest, ImportRoute, RouteRequest } from './route.js'

/** POST /v1/strand/import: imports an export (docs/adr/0022-import.md). */
export const importRoute: ImportRoute = {
  kind: 'import',
  method: 'post',
  path: '/v1/strand/import',
  scope: 'agents:admin',
  errors: [
    'unsupported_media_type',
    'agent_exists',
    'organism_not_found',
    'namespace_not_found',
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
  toImport,
}

function toImport(request: RouteRequest): ImportRequest | Refusal {
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
  const { id: principal, scopes, agents } = request.principal
  const admin = scopes.has('admin:*')
  const organisms = admin || scopes.has('admin:organisms')
  return {
    gzip: contentEncoding === 'gzip',
    hold: hold === 'true',
    admin,
    agents,
    principal,
    ...(agentSeed !== '' && { seed: Buffer.from(agentSeed, 'hex') }),
    agentRefusal(agent) {
      if (typeof agentParameter(agent) !== 'string') {
        return refuse('import_rejected', 'The agent name in the manifest is invalid on this server')
      }
      if (isServerAgent(agent)) return refuse('forbidden', 'Strands of the server itself cannot be imported')
      const organismId = memberOrganism(agent)
      const ofNamespace = organismId !== undefined && agent === memberAddress(organismId, authMember)
      if (ofNamespace && !isUnlimitedAdmin(request.principal)) {
        return refuse(
          'forbidden',
          'Importing an auth namespace requires a key with admin:* that is not limited to agents',
        )
      }
      const refusal = agentRefusal(request, agent)
      if (refusal !== undefined || organisms || organismId === undefined) return refusal
      return refuse('forbidden', 'Importing an agent of an organism requires the scope admin:organisms')
    },
  }
}

const seedPattern = new RegExp(`^[0-9a-f]{${seedBytes * 2}}$`, 'i')

function isNdjson(contentType: string): boolean {
  const mediaType = contentType.split(';')[0]?.trim().toLowerCase() ?? ''
  return ['application/x-ndjson', 'application/ndjson', 'application/jsonl'].includes(mediaType)
}
