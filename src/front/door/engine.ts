import type { Config } from '../../settings/config.js'
import type { DoorOptions, Engine, HttpDoor } from './door.js'

/** How to have the faster library on a Node that the registry's package has no binary for. */
const faster = 'for the faster uWebSockets.js: npm install uNetworking/uWebSockets.js#v20.57.0'

/** A library that was loaded. */
export interface LoadedEngine {
  engine: Engine
  /** Opens a door; throws if the certificate cannot be read. */
  open(options: DoorOptions): HttpDoor
  /** Why several threads cannot listen on one port, in one line; undefined where they can. */
  unsharedBecause(): string | undefined
  /** Why the faster one was not taken and how to have it, in one line; undefined when this one is it, or was asked for. */
  slowerBecause: string | undefined
}

/** The library asked for, or why it does not load, in one line that says what to do. */
export type EngineLoading = { ok: true; loaded: LoadedEngine } | { ok: false; detail: string }

/** Loads the HTTP library that is asked for; of `auto` the first that loads. */
export async function loadEngine(choice: Config['httpEngine']): Promise<EngineLoading> {
  if (choice === 'node') return { ok: true, loaded: await nodeEngine(undefined) }
  try {
    const { uwsDoor, uwsShares } = await import('./uws.js')
    const unshared = 'this version of uWebSockets.js cannot share a port between threads'
    const unsharedBecause = () => (uwsShares() ? undefined : unshared)
    return { ok: true, loaded: { engine: 'uws', open: uwsDoor, unsharedBecause, slowerBecause: undefined } }
  } catch (error) {
    const detail = `uWebSockets.js does not load on Node ${process.versions.node}, ${process.platform} ${process.arch} (${reasonOf(error)})`
    if (choice === 'uws')
      return { ok: false, detail: `${detail}; ${faster}; or set SERVICE_HTTP_ENGINE=auto` }
    return { ok: true, loaded: await nodeEngine(`${detail}; ${faster}`) }
  }
}

async function nodeEngine(slowerBecause: string | undefined): Promise<LoadedEngine> {
  const { nodeDoor } = await import('./node.js')
  return { engine: 'node', open: nodeDoor, unsharedBecause: unsharedByNode, slowerBecause }
}

/** Node shares a port between threads by SO_REUSEPORT, from 22.12 and 23.1 on, where the system shares out connections. */
function unsharedByNode(): string | undefined {
  const { platform, versions } = process
  const [major = 0, minor = 0] = versions.node.split('.').map(Number)
  const knows = major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12)
  if (knows && platform === 'linux') return undefined
  return `node:http of Node ${versions.node} on ${platform} cannot share a port between threads`
}

/** What kind of fault it is: what the package says in many lines is about each system there is. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  if (text.includes('supports only')) return 'it has no binary for it'
  return text.split('\n')[0] ?? text
}
