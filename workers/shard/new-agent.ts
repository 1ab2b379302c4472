import type { Refusal } from '../../src/base/errors.js'
import { genesisBody } from '../../src/strand/genesis.js'
import { agentSeed, keyPairFromSeed } from '../../src/strand/keys.js'
import { genesisType } from '../../src/strand/record-type.js'
import { seal } from '../../src/strand/seal.js'
import type { Zone } from '../../src/strand/zone.js'
import type { Agent, AgentRow } from '../store/tables/agent.js'
import { seedContext } from '../store/tables/agents.js'
import type { ChainedRecord, CommitGroup, Draft } from './commit-group.js'
import type { ShardState } from './state.js'

export interface AgentAhead {
  createdAtMs: number
  keyPair: Agent['keyPair']
  genesis: ChainedRecord
}

/**
 * Adds a new agent and its genesis record to the group; 503 clock_skew.
 * @param ahead the genesis record if it is already signed
 */
export function makeAgent(
  state: ShardState,
  { agent: name, zone, seed, ahead }: { agent: string; zone: Zone; seed?: Uint8Array; ahead?: AgentAhead },
  group: CommitGroup,
): Agent | Refusal {
  const keyPair = ahead?.keyPair ?? keyPairFromSeed(seed ?? agentSeed(state.masterSeed, name))
  const createdAtMs = ahead?.createdAtMs ?? state.clock()
  const agent: Agent = {
    name,
    no: state.store.agents.allocateNo(),
    zone,
    createdAtMs,
    publicKey: keyPair.publicKey,
    strand: '',
    keyIndex: 0,
    keyPair,
    head: { seq: -1, hash: '', hlc: { ms: 0, counter: 0 }, signature: '' },
    strandBytes: 0,
    mutated: false,
    policies: [],
    retiredKeys: [],
    importing: false,
    importedRecords: 0,
  }
  const body = Buffer.from(genesisBody({ agent: name, createdAtMs, publicKey: keyPair.publicKey, zone }))
  const draft: Draft = { type: genesisType, body, signing: 'record' }
  const genesis =
    ahead === undefined ? group.append(agent, draft) : group.appendChained(agent, draft, ahead.genesis)
  if ('code' in genesis) {
    state.store.agents.releaseNo()
    return genesis
  }
  agent.strand = genesis.hash
  const row: AgentRow = {
    no: agent.no,
    zone,
    createdAtMs,
    publicKey: keyPair.publicKey,
    strand: agent.strand,
  }
  if (seed !== undefined) {
    const sealed = seal(state.masterSeed, { ...seedContext(name), secret: seed }, state.random)
    row.sealedSeed = sealed.toString('hex')
  }
  group.newAgents.set(name, row)
  state.store.agents.keep(agent)
  return agent
}
