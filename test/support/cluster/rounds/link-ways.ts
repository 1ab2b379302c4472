import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startTcpProxy, type TcpProxy } from '../tcp-proxy.js'

/** The way by which one node reaches another one. */
interface Way {
  from: string
  to: string
  /** Where the proxy finds the port of the other node. */
  file: string
  proxy: TcpProxy
}

/** Options of Node by which a node goes these ways. */
const options = ['--import', new URL('link-ways.mjs', import.meta.url).href]

/**
 * The ways between nodes, a proxy for each and each direction. A node tells all others one address, of a host that is
 * nowhere; what is preloaded leads each of them through its own proxy.
 */
export class LinkWays {
  readonly #ways: readonly Way[]

  private constructor(ways: readonly Way[]) {
    this.#ways = ways
  }

  /** @param directory of the files that say where nodes listen */
  static async between(names: readonly string[], directory: string): Promise<LinkWays> {
    const ways: Way[] = []
    for (const from of names)
      for (const to of names) {
        if (from === to) continue
        const file = join(directory, `${from}-${to}.port`)
        ways.push({ from, to, file, proxy: await startTcpProxy(() => Number(readFileSync(file, 'utf8'))) })
      }
    return new LinkWays(ways)
  }

  /** Settings of a node, and the options by which its Node is started. */
  of(node: string): { env: Record<string, string>; nodeOptions: readonly string[] } {
    const own = this.#ways.filter(({ from }) => from === node)
    const places = own.map(({ to, file, proxy: { port } }) => [hostOf(to), { file, port }] as const)
    const env = {
      SERVICE_CLUSTER_LINK_ADDRESS: `${hostOf(node)}:0`,
      TEST_LINK_WAYS: JSON.stringify(Object.fromEntries(places)),
    }
    return { env, nodeOptions: options }
  }

  /** Those between some nodes and others, all of them when absent, whoever of the two asks for the link. */
  between(some: readonly string[], others?: readonly string[]): TcpProxy[] {
    const isBetween = (one: string, other: string) =>
      some.includes(one) && (others === undefined || others.includes(other))
    return this.#ways
      .filter(({ from, to }) => isBetween(from, to) || isBetween(to, from))
      .map(({ proxy }) => proxy)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#ways.map(({ proxy }) => proxy.stop()))
  }
}

const hostOf = (node: string) => `${node}.nodes.test`
