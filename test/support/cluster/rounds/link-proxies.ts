import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startTcpProxy, type TcpProxy } from '../tcp-proxy.js'

/** The proxy over which one node reaches another. */
interface LinkProxy {
  from: string
  to: string
  /** The file from which the proxy reads the port of the other node. */
  file: string
  proxy: TcpProxy
}

/** Options of Node with which a node connects through these proxies. */
const options = ['--import', new URL('link-proxies.mjs', import.meta.url).href]

/**
 * The proxied links between nodes, one proxy for each pair and direction. A node publishes one address, with
 * a host that does not exist; the preloaded module redirects each other node to its proxy.
 */
export class LinkProxies {
  readonly #proxies: readonly LinkProxy[]

  private constructor(proxies: readonly LinkProxy[]) {
    this.#proxies = proxies
  }

  /** @param directory for the files with the ports of nodes */
  static async between(names: readonly string[], directory: string): Promise<LinkProxies> {
    const proxies: LinkProxy[] = []
    for (const from of names)
      for (const to of names) {
        if (from === to) continue
        const file = join(directory, `${from}-${to}.port`)
        proxies.push({ from, to, file, proxy: await startTcpProxy(() => Number(readFileSync(file, 'utf8'))) })
      }
    return new LinkProxies(proxies)
  }

  /** Settings of a node, and its options of Node. */
  of(node: string): { env: Record<string, string>; nodeOptions: readonly string[] } {
    const own = this.#proxies.filter(({ from }) => from === node)
    const targets = own.map(({ to, file, proxy: { port } }) => [hostOf(to), { file, port }] as const)
    const env = {
      SERVICE_CLUSTER_LINK_ADDRESS: `${hostOf(node)}:0`,
      TEST_LINK_WAYS: JSON.stringify(Object.fromEntries(targets)),
    }
    return { env, nodeOptions: options }
  }

  /** The proxies between some nodes and others, all others when absent, whichever of the two connects. */
  between(some: readonly string[], others?: readonly string[]): TcpProxy[] {
    const isBetween = (one: string, other: string) =>
      some.includes(one) && (others === undefined || others.includes(other))
    return this.#proxies
      .filter(({ from, to }) => isBetween(from, to) || isBetween(to, from))
      .map(({ proxy }) => proxy)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#proxies.map(({ proxy }) => proxy.stop()))
  }
}

const hostOf = (node: string) => `${node}.nodes.test`
