import { Agent, request } from 'node:http'
import type { ServerAddress, TestAnswer, TestCall } from './server.js'

/** A separate connection, which stays with the front that accepted it. */
export class FrontConnection {
  readonly #server: ServerAddress
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })

  constructor(server: ServerAddress) {
    this.#server = server
  }

  /** As `call` of server.ts, over this connection. */
  call(
    route: string,
    { key = this.#server.rootKey, body, headers = {} }: TestCall = {},
  ): Promise<Pick<TestAnswer, 'status' | 'text' | 'body'> & { requestId: string }> {
    const [method = 'GET', path = '/'] = route.split(' ')
    const json = body === undefined ? undefined : JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const outgoing = request(
        this.#server.url + path,
        {
          method,
          agent: this.#agent,
          headers: {
            ...headers,
            ...(key !== null && { authorization: `Bearer ${key}` }),
            ...(json !== undefined && { 'content-type': 'application/json' }),
          },
        },
        (response) => {
          let text = ''
          response.on('data', (bytes: Buffer) => (text += bytes.toString()))
          response.on('error', reject)
          response.on('end', () => {
            const isJson = response.headers['content-type']?.includes('json') === true
            resolve({
              status: response.statusCode ?? 0,
              text,
              body: isJson ? JSON.parse(text) : undefined,
              requestId: String(response.headers['x-request-id']),
            })
          })
        },
      )
      outgoing.on('error', reject)
      outgoing.end(json)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

/** Identifies the front of a connection by the prefix of its request ids. */
export async function frontOf(connection: FrontConnection): Promise<string> {
  const { requestId } = await connection.call('GET /healthz')
  return requestId.slice(0, requestId.lastIndexOf('-'))
}

/** Opens a connection to each of two fronts. */
export async function connectBoth(server: ServerAddress): Promise<[FrontConnection, FrontConnection]> {
  const found = new Map<string, FrontConnection>()
  for (let tries = 0; tries < 64; tries++) {
    const connection = new FrontConnection(server)
    const front = await frontOf(connection)
    if (found.has(front)) connection.close()
    else found.set(front, connection)
    const [first, second] = found.values()
    if (first !== undefined && second !== undefined) return [first, second]
  }
  throw new Error('Expected both fronts to get connections')
}
