import { Agent, request } from 'node:http'
import type { ServerAddress, TestAnswer, TestCall } from './server.js'

/** A connection of its own: it stays with the front that got it. */
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
  ): Promise<Pick<TestAnswer, 'status' | 'text' | 'body'>> {
    const [method = 'GET', path = '/'] = route.split(' ')
    const json = body === undefined ? undefined : JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const asked = request(
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
            resolve({ status: response.statusCode ?? 0, text, body: isJson ? JSON.parse(text) : undefined })
          })
        },
      )
      asked.on('error', reject)
      asked.end(json)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

/** Requests that each front has answered, by its number. */
async function answeredBy(connection: FrontConnection): Promise<number[]> {
  const { text } = await connection.call('GET /metrics')
  return Array.from(text.matchAll(/^strandfast_front_requests_total\{front="\d+"\} (\d+)$/gm), ([, count]) =>
    Number(count),
  )
}

/** The number of the front that a connection is with. */
export async function frontOf(connection: FrontConnection): Promise<number> {
  const before = await answeredBy(connection)
  for (let n = 0; n < 8; n++) await connection.call('GET /healthz')
  const after = await answeredBy(connection)
  const more = after.map((count, front) => count - (before[front] ?? 0))
  return more.findIndex((count) => count >= 8)
}

/** A connection with each of two fronts. */
export async function connectBoth(server: ServerAddress): Promise<[FrontConnection, FrontConnection]> {
  const found: (FrontConnection | undefined)[] = [undefined, undefined]
  for (let tries = 0; tries < 64; tries++) {
    const connection = new FrontConnection(server)
    const front = await frontOf(connection)
    if (found[front] === undefined) found[front] = connection
    else connection.close()
    const [first, second] = found
    if (first !== undefined && second !== undefined) return [first, second]
  }
  throw new Error('Expected both fronts to get connections')
}
