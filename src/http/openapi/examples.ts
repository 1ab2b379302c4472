import { authExamples } from './auth-examples.js'

/*
 * Examples of bodies, by the name of their schema (openapi-schemas.ts). A test holds each one against its schema.
 */

const strand = '3fb907e768db9ff74f68b03b8af5a3412eaf44e15f5de1e929e276c5d29cdd19'
const publicKey = '03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8'
const first = 'b5d4045c3f466fa91fe2cc6abe79232a1a57cdf104f7a26e716e0a1e2789df78'
const second = '4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce'
const signature =
  '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
  '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00'

const reading = { sensor: 'boiler-2', celsius: 71.4, ok: true }

const written = {
  record_id: second,
  id: second,
  content_hash: second,
  hash: `sha256:${second}`,
  parent_hash: first,
  timestamp_hlc: '0199c5b8f2a4-0000',
  seq: 2,
  signature,
  agent: 'sensors',
}

const record = {
  record_id: second,
  content_hash: second,
  parent_hash: first,
  seq: 2,
  timestamp_hlc: '0199c5b8f2a4-0000',
  type: 'reading',
  payload: reading,
  signature,
  public_key: publicKey,
  deleted: false,
  erased: false,
}

const head = {
  agent_id: 'sensors',
  chain_head: second,
  hash: `sha256:${second}`,
  seq: 2,
  record_count: 2,
  timestamp_hlc: '0199c5b8f2a4-0000',
  signature,
}

const summary = { accepted: 2, rejected: 1, first_seq: 3, last_seq: 4, chain_head: second }
const fault = { line: 2, code: 'validation_failed', detail: 'Expected a JSON object' }
const byCode = { rejected_by_code: { validation_failed: 1 } }

const key = {
  key_id: 'key_6f1c9a52e07b4d3388a1c2f0',
  name: 'Sensor gateway',
  scopes: ['ingest'],
  agents: ['sensor-*'],
  expires_at_ms: null,
}

const policies = [
  { actions: ['read', 'write'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] },
  {
    actions: ['read', 'delete'],
    conditions: [{ field: 'tenant', op: 'eq', value: '$jwt.app_metadata.tenant' }],
  },
]

const organism = { organism_id: 'acme', name: 'Acme', created_at_ms: 1_760_000_000_000 }

const edge = { src: 'boiler-2', dst: 'sensors', edge_type: 'feeds', weight: 1 }
const ends = { src: edge.src, dst: edge.dst, edge_type: edge.edge_type }
const edgeRecord = { record_id: second, seq: 2, timestamp_hlc: '0199c5b8f2a4-0000' }

const treeHead = `strandfast/${strand}\n3\ntdQEXD9Gb6kf4sxqvnkjKhpXzfEE96JucW4KHieJ33g=\n\n— strandfast/${strand} …\n`

const where = [{ field: 'celsius', op: 'gt', value: 70 }]

const proposal = {
  proposal_id: 'p_3_sensors',
  agent: 'sensors',
  action: 'delete',
  target: second,
  change: null,
  zone: 'governed',
  state: 'applied',
  proposer: 'key_6f1c9a52e07b4d3388a1c2f0',
  line: 'key_6f1c9a52e07b4d3388a1c2f0',
  votes: [{ principal: 'root', line: 'root', vote: 'approve', at_ms: 1_760_000_010_000 }],
  created_at_ms: 1_760_000_000_000,
  effective_at_ms: 1_760_000_060_000,
  expires_at_ms: 1_760_604_800_000,
  ended_at_ms: 1_760_000_010_000,
  reason: null,
}

const loggedRecord = {
  h: `strand-record/v1\nstrand ${strand}\nkey ${publicKey}\nseq 2\nprev …\ntype sys/heads\nbody …\n`,
  sig: signature,
  salt: '3efb72787632fae323938940daa98ca8',
  body: `{"clocks":["0199c5b8f2a4-0000"],"heads":[["${first}",3,"${second}"]]}`,
}

/** Schema name → example name → body. */
export const schemaExamples: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  ...authExamples,
  AgentCreateBody: { agent: { name: 'sensors', zone: 'governed' } },
  AgentCreated: {
    agent: {
      agent_id: 'sensors',
      name: 'sensors',
      zone: 'governed',
      public_key: publicKey,
      strand,
      created_at_ms: 1_760_000_000_000,
    },
  },
  AgentPage: { page: { agents: ['default', 'sensors'], total: 2, next_cursor: null } },
  AgentStatus: {
    status: {
      agent_id: 'sensors',
      zone: 'governed',
      record_count: 2,
      chain_head: second,
      public_key: publicKey,
      strand,
      timestamp_hlc: '0199c5b8f2a4-0000',
      bytes: 94,
      created_at_ms: 1_760_000_000_000,
    },
  },
  ApiKeyCreateBody: {
    key: { name: 'Sensor gateway', scopes: ['ingest'], agents: ['sensor-*'] },
    'for a day': { name: 'Auditor', scopes: ['records:read'], expires_in_secs: 86_400 },
  },
  ApiKeyCreated: { key: { ...key, key: 'sf_key_3q2-7wAAAAAAEXAMPLEAAAAAAAAAAAAAAAAAAAAAAAA' } },
  ApiKeyDeleted: { deleted: { deleted: true, key_id: key.key_id } },
  ApiKeyProposed: {
    key: {
      ...key,
      scopes: ['proposals:decide'],
      key: 'sf_key_3q2-7wAAAAAAEXAMPLEAAAAAAAAAAAAAAAAAAAAAAAA',
      proposal_id: 'p_7_server::audit',
      state: 'proposed',
      effective_at_ms: null,
    },
  },
  ApiKeyPage: {
    keys: {
      api_keys: [
        {
          ...key,
          created_at_ms: 1_760_000_000_000,
          made_by: 'root',
          line: key.key_id,
          last_used_at_ms: 1_760_000_360_000,
        },
      ],
      next_cursor: null,
    },
  },
  BatchWriteBody: {
    batch: {
      records: [
        { data: reading, type: 'reading' },
        { data: { ...reading, celsius: 72.1 }, type: 'reading' },
      ],
      atomic: true,
    },
  },
  BatchWritten: { written: { results: [written] } },
  ChainHead: { head },
  EdgeAdded: { added: { ...edge, ...edgeRecord } },
  EdgeBody: { edge, 'weight 1': ends },
  EdgePage: { page: { edges: [edge], next_cursor: null } },
  EdgeRemoved: { removed: { ...ends, removed: true, ...edgeRecord } },
  GraphEdge: { edge },
  ConsistencyProof: {
    proof: {
      agent: 'sensors',
      from: 2,
      to: 3,
      path: [second],
      from_root: strand,
      to_root: first,
      checkpoint: treeHead,
    },
  },
  InclusionProof: {
    proof: {
      agent: 'sensors',
      hash: second,
      seq: 2,
      tree_size: 3,
      root: first,
      path: [strand],
      checkpoint: `example.org/strandfast/sensors\n3\ntdQEXD9Gb6kf4sxqvnkjKhpXzfEE96JucW4KHieJ33g=\n\n— example.org/strandfast/sensors …\n`,
    },
  },
  IngestManySummary: {
    summary: {
      accepted: 2,
      rejected: 1,
      ...byCode,
      errors: [{ ...fault, agent: 'sensors' }],
      agents: { sensors: summary },
    },
  },
  IngestSummary: { summary: { ...summary, ...byCode, errors: [fault] } },
  KeyRotated: {
    rotated: { agent_id: 'sensors', public_key: publicKey, seq: 3, record_id: second },
  },
  LogConsistency: {
    proof: { from: 2, to: 3, path: [second], from_root: strand, to_root: first, checkpoint: treeHead },
  },
  LoggedHeadProof: {
    proof: {
      agent: 'sensors',
      strand: first,
      size: 3,
      hash: second,
      log: {
        strand,
        public_key: publicKey,
        seq: 2,
        record: loggedRecord,
        tree_size: 3,
        root: first,
        path: [strand],
        checkpoint: treeHead,
      },
    },
  },
  MutationDone: { done: { record_id: second, state: 'deleted', seq: 3 } },
  NamespaceInitialised: {
    made: { organism_id: 'acme', agent_id: 'acme::auth', created_at_ms: 1_760_000_060_000 },
  },
  OrganismCreateBody: {
    organism: { organism_id: 'acme', name: 'Acme', agents: [{ name: 'notes', zone: 'free' }] },
    'id made by the server': { name: 'Acme' },
  },
  OrganismCreated: {
    organism: { ...organism, agents: [{ agent_id: 'acme::notes', name: 'notes', zone: 'free' }] },
  },
  OrganismId: { id: 'acme' },
  OrganismPage: { page: { organisms: [organism], total: 1, next_cursor: null } },
  OrganismView: {
    organism: { ...organism, agents: ['acme::auth', 'acme::notes'], agent_count: 2, auth: true },
  },
  PoliciesBody: { policies: { policies } },
  PoliciesReplaced: {
    replaced: { agent_id: 'sensors', policies, warnings: [], seq: 2, record_id: second },
  },
  PoliciesShown: { policies: { agent_id: 'sensors', policies } },
  ProposalPage: { page: { proposals: [proposal], next_cursor: null } },
  ProposalView: { proposal },
  Proposed: {
    proposed: { proposal_id: 'p_3_sensors', state: 'proposed', effective_at_ms: 1_760_000_060_000 },
  },
  QueryAnswer: { records: { records: [record], next_cursor: null }, head },
  QueryBody: {
    latest: { type: 'latest', limit: 20, where },
    time_range: {
      type: 'time_range',
      from_ts: '2026-01-01T00:00:00Z',
      to_ts: 1_790_000_000_000,
      types: ['reading'],
    },
    hash: { type: 'hash', hash: second },
    chain_head: { type: 'chain_head' },
  },
  QueryResult: { records: { records: [record], next_cursor: null } },
  RecordView: { record },
  RecordWriteBody: { record: { data: reading, type: 'reading' } },
  RotateKeyBody: { drawn: {}, chosen: { seed_hex: strand } },
  StrandAsOf: {
    moment: {
      ts: '2026-01-01T00:00:00Z',
      records: [record],
      chain_head: second,
      record_count: 2,
      next_cursor: null,
      checkpoint: treeHead,
      zone: 'governed',
    },
    'before the genesis record': {
      ts: '2016-01-01T00:00:00Z',
      records: [],
      chain_head: null,
      record_count: 0,
      next_cursor: null,
      checkpoint: null,
      zone: null,
    },
  },
  StrandImported: {
    imported: {
      agent_id: 'sensors',
      strand,
      imported: 3,
      skipped: 0,
      first_seq: 0,
      last_seq: 2,
      chain_head: second,
      record_count: 2,
      open: true,
    },
  },
  StreamTicket: { ticket: { ticket: 'sf_ticket_9cXAMPLEhV0', expires_in: 60 } },
  TraversalResult: {
    found: { nodes: ['boiler-2', 'sensors'], edges: [edge], truncated: false },
  },
  WriteResponse: { written },
  WhoAmI: {
    key: {
      principal: key.key_id,
      kind: 'api_key',
      scopes: key.scopes,
      agents: key.agents,
      name: key.name,
      made_by: 'root',
      created_at_ms: 1_760_000_000_000,
      expires_at_ms: null,
      user: null,
    },
  },
  ZoneBody: { zone: { zone: 'protected' } },
  ZoneChanged: { changed: { agent_id: 'sensors', zone: 'protected', seq: 3, record_id: second } },
}

/** The body of one ingested record: the JSON itself, without a wrapper. */
export const ingestedRecord = reading

/** Two of them, as elements of an array. */
export const ingestedRecords = [reading, { ...reading, celsius: 72.1 }]

/** Records of two agents. */
export const addressedRecords = [
  { agent: 'sensors', data: reading },
  { agent: 'doors', data: { door: 'north', open: true } },
]

/** An event in the JSON format of CloudEvents; `agent` says whose it is where the path does not. */
export const cloudEvent = {
  specversion: '1.0',
  id: '7f3a',
  source: '/rooms/boiler',
  type: 'org.example.reading',
  agent: 'sensors',
  data: reading,
}

function linesOf(values: readonly object[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('')
}

/** Texts of bodies that are not JSON, by operationId and media type. */
export const textExamples: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  postIngestByAgent: {
    'application/x-ndjson': linesOf(ingestedRecords),
  },
  postIngest: {
    'application/x-ndjson': linesOf(addressedRecords),
  },
  getAgentStream: { 'text/event-stream': eventExample() },
  getStream: { 'text/event-stream': eventExample() },
}

function eventExample(): string {
  const data = {
    record_id: second,
    payload: reading,
    agent: 'sensors',
    seq: 2,
    type: 'reading',
    timestamp_hlc: '0199c5b8f2a4-0000',
    content_hash: second,
    parent_hash: first,
  }
  return `retry: 2000\n\nid: 2\nevent: record\ndata: ${JSON.stringify(data)}\n\nevent: caught_up\ndata: {}\n\n`
}
