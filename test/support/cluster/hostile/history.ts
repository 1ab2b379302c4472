import { requestNode, type LoadAnswer, type LoadRequest, posting } from '../rounds/cluster-client.js'

/*
 * The requests of a cluster's clients and their answers. Two texts of the same length have the same CRC-32,
 * so one can replace the other wherever only a CRC would detect it.
 */

export const owed = 'owed to the miller: 0825967832'
export const forgedOwed = 'owed to the miller: 8484501790'

/**
 * An agent of zone `immutable_core`, one whose records are erased and deleted, and two in the second of two
 * shards.
 */
export const agents = ['ledger', 'diary', 'notes', 'stock'] as const
/** Strands of the server: the audit strand and the log of heads. */
export const serverStrands = ['server::audit', 'server::log'] as const

/** A credential that is valid, or was. */
export interface Credential {
  name: string
  key: string
}

/** The clients of one cluster. */
export class Clients {
  readonly credentials: Credential[] = []
  /** Paths of acknowledged records. */
  readonly records: string[] = []
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  /** Sends a request that has to succeed. */
  async send(request: LoadRequest): Promise<LoadAnswer> {
    const answer = await requestNode(this.#url, request, answerTimeoutMs)
    if (answer === undefined || answer.status >= 300)
      throw new Error(`${request.method} ${request.path}: ${answer?.status} ${answer?.text}`)
    return answer
  }

  post(path: string, body: unknown, more: Partial<LoadRequest> = {}): Promise<LoadAnswer> {
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

  /** Writes a record to each agent. */
  async writeAll(about: string): Promise<void> {
    for (const agent of agents) await this.write(agent, `${agent}, ${about}: ${owed}`)
  }

  async makeKey(name: string, scopes: readonly string[]): Promise<Credential & { id: string }> {
    const { body } = await this.post('/v1/admin/api-keys', { name, scopes })
    const created = { name, key: String(body.key), id: String(body.key_id) }
    this.credentials.push(created)
    return created
  }

  async deleteKey({ id }: { id: string }): Promise<void> {
    await this.send({ method: 'DELETE', path: `/v1/admin/api-keys/${id}` })
  }

  /** Signs a user in by a magic link. */
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

/** Answers of a cluster, by request. */
export type Answers = ReadonlyMap<string, LoadAnswer | undefined>

/** The requests that show whether a node serves the truth. */
export interface Known {
  credentials: readonly Credential[]
  records: readonly string[]
}

/** Time limit of an answer, milliseconds. */
export const answerTimeoutMs = 15_000

/** Sends all requests, until one is not answered in time. */
export async function look(url: string, { credentials, records }: Known): Promise<Answers> {
  const answers = new Map<string, LoadAnswer | undefined>()
  const ofAgents = agents.flatMap((agent) => [headOf(agent), `/v1/agents/${agent}/policies`, strandOf(agent)])
  const requests = [...records, ...ofAgents, ...serverStrands.map(strandOf)].map(
    (path): [string, LoadRequest] => [path, { method: 'GET', path }],
  )
  for (const { name, key } of credentials)
    requests.push([`${whoami} as ${name}`, { method: 'GET', path: whoami, key }])
  for (const [name, request] of requests) {
    const answer = await requestNode(url, request, answerTimeoutMs)
    answers.set(name, answer)
    if (answer === undefined) break
  }
  return answers
}

/** The route that describes a credential. */
export const whoami = '/v1/whoami'

export function headOf(agent: string): string {
  return `/v1/agents/${agent}/head`
}

export function strandOf(agent: string): string {
  return `/v1/strand/export?agent=${agent}`
}

/** The lines of an export that contain records. */
export function recordLines({ text }: Pick<LoadAnswer, 'text'>): string[] {
  return text.split('\n').filter((line) => line.startsWith('{"h"'))
}
