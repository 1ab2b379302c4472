import { createReadStream } from 'node:fs'
import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import { limits } from '../base/limits/limits.js'
import { pagesOf } from '../client/collection.js'
import { ServiceError } from '../client/errors.js'
import type { ServiceClient } from '../client/service-client.js'
import type { AgentStatusResponse, ApiKeyMade, ProposalView, Proposed, RowPolicy } from '../client/types.js'
import { proposalStates } from '../strand/proposal.js'
import { type Scope, scopes } from '../wire/api-keys.js'
import { PoliciesBody } from '../wire/policies.js'
import { reader } from '../wire/validate.js'
import { printMembers, timeCell } from './output.js'
import { printable } from './printable.js'
import {
  type Answer,
  type CallRequest,
  linesAnswer,
  type ServerCall,
  type ServerCommand,
  tableAnswer,
} from './server-command.js'
import { printWarning } from './server-client.js'
import { unpacked } from './unpacked.js'

/** The commands that send requests to a server and print the answers (docs/OPERATIONS.md, Command line). */
export const serverCommands = {
  agents: {
    usage: `Usage: strandfast agents [--prefix TEXT]
Lists the agents and collections whose names begin with TEXT, or all.
`,
    calls: [{ options: ['prefix'], failed: 'The agents could not be listed', answer: listAgents }],
  },
  status: {
    usage: `Usage: strandfast status NAME
Shows an agent or collection: its zone, public key, strand, number of records and chain head. --field public_key prints the
public key alone.
`,
    calls: [{ operands: ['NAME'], failed: 'The status could not be read', answer: showStatus }],
  },
  keys: {
    usage: `Usage: strandfast keys list
       strandfast keys create NAME --scope SCOPE… [--agent AGENT]… [--expires-in TIME]
       strandfast keys delete ID
       strandfast keys rotate [--organism ID]
Lists, creates and deletes API keys; needs a key with admin:*. A new key is printed once; --field key prints it alone. SCOPE is one
of ${scopes.join(', ')}
(docs/scopes.md). AGENT is a name, or a prefix and *; without --agent, the key reaches all agents. TIME is a number of seconds, or
a number and m, h or d: 90d. rotate makes the server sign users' tokens with its next key.
`,
    calls: [
      { word: 'list', failed: 'The keys could not be listed', answer: listKeys },
      {
        word: 'create',
        operands: ['NAME'],
        options: ['scope', 'agent', 'expires-in'],
        failed: 'The key was not created',
        check: checkNewKey,
        answer: createKey,
      },
      { word: 'delete', operands: ['ID'], failed: 'The key was not deleted', answer: deleteKey },
    ],
  },
  proposals: {
    usage: `Usage: strandfast proposals list [NAME] [--state STATE]
       strandfast proposals approve ID
       strandfast proposals reject ID
       strandfast proposals cancel ID
Lists open proposals, of all agents or of the agent NAME, and decides about them (docs/ZONES.md); needs a key with proposals:decide.
STATE is all, or one of ${proposalStates.join(', ')}. cancel withdraws a proposal of the same key.
`,
    calls: [
      {
        word: 'list',
        operands: ['[NAME]'],
        options: ['state'],
        failed: 'The proposals could not be listed',
        check: ({ state }) =>
          stateOf(state) === undefined ? 'Expected --state to be a state, or all' : undefined,
        answer: listProposals,
      },
      voteCall('approve'),
      voteCall('reject'),
      voteCall('cancel'),
    ],
  },
  policies: {
    usage: `Usage: strandfast policies get NAME
       strandfast policies set NAME FILE
Prints or replaces the row policies of an agent, which decide what users may do with its records (docs/ROW-POLICIES.md); needs a
key with agents:admin. FILE is a JSON document as get prints it, or - for standard input.
`,
    calls: [
      {
        word: 'get',
        operands: ['NAME'],
        failed: 'The policies could not be read',
        answer: getPolicies,
      },
      {
        word: 'set',
        operands: ['NAME', 'FILE'],
        failed: 'The policies were not replaced',
        answer: setPolicies,
      },
    ],
  },
  users: {
    usage: `Usage: strandfast users [--prefix TEXT] [--organism ID]
Lists the users whose e-mails begin with TEXT, or all; with --organism, those of an organism. Needs a key with admin:*, or for an
organism with admin:organisms.
`,
    calls: [{ options: ['prefix', 'organism'], failed: 'The users could not be listed', answer: listUsers }],
  },
  erase: {
    usage: `Usage: strandfast erase NAME HASH [--yes]
Permanently destroys the body of the record HASH of an agent; its place in the chain and all proofs remain. Depending on the
agent's zone, this is a proposal first (docs/ZONES.md). On a terminal, the command shows the record and asks for a
confirmation; otherwise --yes is necessary.
`,
    calls: [
      {
        operands: ['NAME', 'HASH'],
        options: ['yes'],
        failed: 'Nothing was erased',
        check: ({ yes }) =>
          yes === true || process.stdin.isTTY ? undefined : 'Expected --yes, or a terminal to confirm on',
        answer: eraseRecord,
      },
    ],
  },
} satisfies Record<string, ServerCommand>

async function listAgents({ client, values: { prefix } }: CallRequest): Promise<Answer> {
  async function* statuses(): AsyncGenerator<AgentStatusResponse> {
    for await (const page of pagesOf((cursor) => client.agentStatuses({ prefix, cursor })))
      yield* page.statuses
  }
  return tableAnswer(
    statuses(),
    {
      name: ({ agent_id: name }) => name,
      zone: ({ zone }) => zone,
      records: ({ record_count: count }) => count,
      bytes: ({ bytes }) => bytes,
      'last record': ({ timestamp_ms: lastMs }) => timeCell(lastMs),
      created: ({ created_at_ms: createdMs }) => timeCell(createdMs),
      'public key': ({ public_key: publicKey }) => publicKey,
    },
    'No agents',
  )
}

async function showStatus({ client, operands: [name = ''] }: CallRequest): Promise<Answer> {
  const status = await client.agent(name).status()
  const members = {
    name: status.agent_id,
    zone: status.zone,
    records: `${status.record_count} and the genesis record`,
    bytes: status.bytes,
    'last record': timeCell(status.timestamp_ms),
    created: timeCell(status.created_at_ms),
    'public key': status.public_key,
    strand: status.strand,
    'chain head': status.chain_head,
  }
  return { objects: [status], print: () => printMembers(members) }
}

async function listKeys({ client }: CallRequest): Promise<Answer> {
  return tableAnswer(
    client.apiKeys.listAll(),
    {
      id: ({ key_id: id }) => id,
      name: ({ name }) => name,
      scopes: (key) => key.scopes,
      agents: ({ agents }) => (agents.length === 0 ? 'all' : agents),
      'last used': ({ last_used_at_ms: usedMs }) => timeCell(usedMs),
      expires: ({ expires_at_ms: expiresMs }) => timeCell(expiresMs) ?? 'never',
      created: ({ created_at_ms: createdMs }) => timeCell(createdMs),
      'created by': ({ made_by: creator }) => creator,
    },
    'No API keys besides the root key',
  )
}

function checkNewKey({ scope = [], 'expires-in': expiresIn }: CallRequest['values']): string | undefined {
  if (scope.length === 0 || !scope.every(isScope)) return `Expected --scope to be one of ${scopes.join(', ')}`
  if (expiresIn !== undefined && secondsOf(expiresIn) === undefined)
    return 'Expected --expires-in to be a number of seconds, or a number and m, h or d'
  return undefined
}

function isScope(text: string): text is Scope {
  return scopes.some((scope) => scope === text)
}

const secondsByUnit: Readonly<Record<string, number>> = { '': 1, m: 60, h: 3_600, d: 86_400 }

function secondsOf(text: string): number | undefined {
  const [, count, unit = ''] = /^([1-9]\d{0,9})([mhd]?)$/.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * (secondsByUnit[unit] ?? 1)
}

async function createKey({ client, operands: [name = ''], values }: CallRequest): Promise<Answer> {
  const { scope = [], agent, 'expires-in': expiresIn } = values
  const seconds = expiresIn === undefined ? undefined : secondsOf(expiresIn)
  const made: ApiKeyMade = await client.apiKeys.create({
    name,
    scopes: scope.filter(isScope),
    ...(agent !== undefined && { agents: agent }),
    ...(seconds !== undefined && { expires_in_secs: seconds }),
  })
  const reach = made.agents.length === 0 ? 'all agents' : made.agents.join(', ')
  const pending = 'proposal_id' in made ? [`It is valid only after this: ${describeProposed(made)}`] : []
  return linesAnswer(made, [
    `Created ${made.key_id} (${made.name}): ${made.scopes.join(', ')} for ${reach}, expires ${timeCell(made.expires_at_ms) ?? 'never'}`,
    `API key, shown this once: ${made.key}`,
    ...pending,
  ])
}

async function deleteKey({ client, operands: [id = ''] }: CallRequest): Promise<Answer> {
  const deleted = await client.apiKeys.remove(id)
  return linesAnswer(deleted, [`Deleted ${deleted.key_id}`])
}

/** The states to list: `proposed` means open. @returns undefined if the text is not a state */
function stateOf(text = 'proposed'): ProposalView['state'] | 'all' | undefined {
  return text === 'all' ? 'all' : proposalStates.find((state) => state === text)
}

async function listProposals({ client, operands: [agent], values }: CallRequest): Promise<Answer> {
  const state = stateOf(values.state)
  return tableAnswer(
    client.proposals.listAll({ agent, state: state === 'all' ? undefined : state }),
    {
      id: ({ proposal_id: id }) => id,
      state: (proposal) => proposal.state,
      action: ({ action }) => action,
      'proposed by': ({ proposer }) => proposer,
      created: ({ created_at_ms: createdMs }) => timeCell(createdMs),
      applies: (proposal) =>
        proposal.state === 'proposed' ? (timeCell(proposal.effective_at_ms) ?? 'when approved') : undefined,
      ended: ({ ended_at_ms: endedMs }) => timeCell(endedMs),
      zone: ({ zone }) => zone,
      about: ({ target, target_seq: seq, change }) =>
        target === null ? JSON.stringify(change) : `record ${seq} ${target}`,
    },
    state === 'proposed' ? 'No open proposals' : 'No proposals',
  )
}

function voteCall(vote: 'approve' | 'reject' | 'cancel'): ServerCall {
  return {
    word: vote,
    operands: ['ID'],
    failed: 'The proposal was not decided',
    async answer({ client, operands: [id = ''] }) {
      const proposal = await client.proposals[vote](id)
      const { proposal_id: shownId, state } = proposal
      const isOpen = state === 'proposed'
      return linesAnswer(proposal, [
        isOpen ? `${shownId} is still open: it needs another approval` : `${shownId} is ${state}`,
      ])
    },
  }
}

async function getPolicies({ client, operands: [name = ''] }: CallRequest): Promise<Answer> {
  const { policies } = await client.agent(name).policies()
  return { objects: [{ policies }] }
}

const policiesDocument = reader(PoliciesBody)

async function setPolicies({ client, operands: [name = '', file = ''] }: CallRequest): Promise<Answer> {
  const answer = await client.agent(name).setPolicies(await readPolicies(file))
  if ('proposal_id' in answer) return linesAnswer(answer, [describeProposed(answer)])
  for (const warning of answer.warnings) printWarning(warning)
  return linesAnswer(answer, [`Replaced the policies of ${answer.agent_id}: ${answer.policies.length}`])
}

/** @throws Error if the file cannot be read or is not a document with policies */
async function readPolicies(file: string): Promise<readonly RowPolicy[]> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of unpacked(file === '-' ? process.stdin : createReadStream(file))) {
    parts.push(part)
    bytes += part.length
    if (bytes > limits.batchBytesMax) throw new Error(`${file} has more than ${limits.batchBytesMax} bytes`)
  }
  const read = policiesDocument.bytes(Buffer.concat(parts))
  if ('value' in read) return read.value.policies
  throw new Error(`${file}: ${read.detail}`)
}

async function listUsers({ client, values: { prefix, organism } }: CallRequest): Promise<Answer> {
  const { users } = (organism === undefined ? client : client.organism(organism)).auth
  type User = Awaited<ReturnType<typeof users.list>>['users'][number]
  async function* all(): AsyncGenerator<User> {
    for await (const page of pagesOf((cursor) => users.list({ prefix, cursor }))) yield* page.users
  }
  return tableAnswer(
    all(),
    {
      email: ({ email }) => email,
      id: ({ user_id: id }) => id,
      verified: ({ verified }) => verified,
      passkeys: ({ passkeys }) => passkeys,
      'last sign-in': ({ last_login_at_ms: loginMs }) => timeCell(loginMs),
      'locked until': ({ locked_until_ms: lockedMs }) => timeCell(lockedMs),
      created: ({ created_at_ms: createdMs }) => timeCell(createdMs),
    },
    'No users',
  )
}

async function eraseRecord({
  client,
  operands: [name = '', hash = ''],
  values,
}: CallRequest): Promise<Answer> {
  if (values.yes !== true) {
    process.stderr.write(`${printable(await describeRecord(client, name, hash))}\n`)
    if (!(await isConfirmed('Permanently erase its body? Type yes to confirm: ')))
      throw new Error('Not confirmed')
  }
  const answer = await client.agent(name).eraseRecord(hash)
  return linesAnswer(answer, [
    'proposal_id' in answer ? describeProposed(answer) : `Erased ${answer.record_id} of ${name}`,
  ])
}

/** Characters that are shown of the body of a record. */
const BODY_CHARS_MAX = 300

async function describeRecord(client: ServiceClient, agent: string, hash: string): Promise<string> {
  try {
    const { seq, type, timestamp_ms: timeMs, payload } = await client.agent(agent).get(hash)
    const body = JSON.stringify(payload)
    const shown = body.length > BODY_CHARS_MAX ? `${body.slice(0, BODY_CHARS_MAX)}…` : body
    return `Record ${seq} of ${agent}, ${type}, ${timeCell(timeMs)}: ${shown}`
  } catch (error) {
    // A key may be allowed to erase, but not to read.
    if (error instanceof ServiceError && error.status === 403) return `Record ${hash} of ${agent}`
    throw error
  }
}

/** Asks on the terminal. @returns whether the answer is `yes`; not after Ctrl-C or Ctrl-D */
async function isConfirmed(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const closed = once(terminal, 'close').then(() => '')
    return (await Promise.race([terminal.question(question), closed])).trim() === 'yes'
  } finally {
    terminal.close()
  }
}

function describeProposed({
  proposal_id: id,
  effective_at_ms: effectiveMs,
}: Pick<Proposed, 'proposal_id' | 'effective_at_ms'>): string {
  return effectiveMs === null
    ? `Proposed ${id}: it is applied when another key approves it (strandfast proposals approve ID)`
    : `Proposed ${id}: it is applied at ${timeCell(effectiveMs)} unless it is rejected`
}
