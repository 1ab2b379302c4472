import { askNode, type Answered, type Ask, posting } from '../rounds/cluster-client.js'

/*
 * What clients of a cluster did and were answered. Two texts of one length have the same CRC-32, so one can stand for the other
 * wherever nothing but a CRC would show it.
 */

export const owed = 'owed to the miller: 0825967832'
export const forgedOwed = 'owed to the miller: 8484501790'

/** The agent of zone `immutable_core`, one whose records are erased and deleted, and two in the second shard of two. */
export const agents = ['ledger', 'diary', 'notes', 'stock'] as const
/** Strands of the server: audit, and the log of heads. */
export const serverStrands = ['server::audit', 'server::log'] as const

/** A credential that is in force, or was. */
export interface Credential {
  name: string
  key: string
}

/** What is written by clients of one cluster. */
export class Clients {
  readonly credentials: Credential[] = []
  /** Paths of records that were answered. */
  readonly records: string[] = []
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  /** Sends a request that has to succeed. */
  async send(ask: Ask): Promise<Answered> {
    const answer = await askNode(this.#url, ask, patienceMs)
    if (answer === undefined || answer.status >= 300)
      throw new Error(`${ask.method} ${ask.path}: ${answer?.status} ${answer?.text}`)
    return answer
  }

  post(path: string, body: unknown, more: Partial<Ask> = {}): Promise<Answered> {
    return this.send(posting(path, body, more))
  }

  async makeAgents(): Promise<void> {
    for (const name of agents)
      await this.post('/v1/agents', { name, zone: name === 'ledger' ? 'immutable_core' : 'free' })
  }

  /** @returns the path of the record */
  async write(agent: string, text: string): Promise<string> {
    const { body } = await this.post(`/v1/agents/${agent}/records`, { data: { text } })
    const path = `/v1/agents/${agent}/records/${body.content_hash}`
    this.records.push(path)
    return path
  }

  /** Records of all agents. */
  async writeAll(about: string): Promise<void> {
    for (const agent of agents) await this.write(agent, `${agent}, ${about}: ${owed}`)
  }

  async makeKey(name: string, scopes: readonly string[]): Promise<Credential & { id: string }> {
    const { body } = await this.post('/v1/admin/api-keys', { name, scopes })
    const made = { name, key: String(body.key), id: String(body.key_id) }
    this.credentials.push(made)
    return made
  }

  async deleteKey({ id }: { id: string }): Promise<void> {
    await this.send({ method: 'DELETE', path: `/v1/admin/api-keys/${id}` })
  }

  /** Signs a user in by a link. */
  async signIn(email: string): Promise<Credential> {
    const { body: sent } = await this.post('/v1/auth/magic-link/send', { email })
    const { body } = await this.post('/v1/auth/magic-link/verify', { token: sent.token })
    const signedIn = { name: email, key: String(body.token) }
    this.credentials.push(signedIn)
    return signedIn
  }

  async signOut({ key }: Credential): Promise<void> {
    await this.post('/v1/auth/revoke', undefined, { key })
  }
}

/** What a cluster has said, or says now: by question. */
export type Answers = ReadonlyMap<string, Answered | undefined>

/** What is asked of a node to see whether it serves the truth. */
export interface Known {
  credentials: readonly Credential[]
  records: readonly string[]
}

/** How long an answer may take, milliseconds. */
export const patienceMs = 15_000

/** Asks everything, up to the first that is not answered in time. */
export async function look(url: string, { credentials, records }: Known): Promise<Answers> {
  const answers = new Map<string, Answered | undefined>()
  const ofAgents = agents.flatMap((agent) => [
    `/v1/agents/${agent}/head`,
    `/v1/agents/${agent}/policies`,
    strandOf(agent),
  ])
  const asks = [...records, ...ofAgents, ...serverStrands.map(strandOf)].map((path): [string, Ask] => [
    path,
    { method: 'GET', path },
  ])
  for (const { name, key } of credentials)
    asks.push([`${whoami} as ${name}`, { method: 'GET', path: whoami, key }])
  for (const [name, ask] of asks) {
    const answer = await askNode(url, ask, patienceMs)
    answers.set(name, answer)
    if (answer === undefined) break
  }
  return answers
}

/** Where a credential is shown what it is. */
export const whoami = '/v1/whoami'

export function strandOf(agent: string): string {
  return `/v1/strand/export?agent=${agent}`
}

/** The lines of records of an export. */
export function recordLines({ text }: Pick<Answered, 'text'>): string[] {
  return text.split('\n').filter((line) => line.startsWith('{"h"'))
}
