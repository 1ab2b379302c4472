import type { Config } from '../settings/config.js'
import type { DoorOptions, Engine, HttpDoor } from './door.js'

/** How to have the faster library on a Node that the registry's package has no binary for. */
const faster = 'for the faster uWebSockets.js: npm install uNetworking/uWebSockets.js#v20.57.0'

/** A library that was loaded. */
export interface LoadedEngine {
  engine: Engine
  /** Opens a door; throws if the certificate cannot be read. */
  open(options: DoorOptions): HttpDoor
  /** Why the faster one was not taken and how to have it, in one line; undefined when this one is it, or was asked for. */
  slowerBecause: string | undefined
}

/** The library asked for, or why it does not load, in one line that says what to do. */
export type EngineLoading = { ok: true; loaded: LoadedEngine } | { ok: false; detail: string }

/** Loads the HTTP library that is asked for; of `auto` the first that loads. */
export async function loadEngine(choice: Config['httpEngine']): Promise<EngineLoading> {
  if (choice === 'node') return { ok: true, loaded: await nodeEngine(undefined) }
  try {
    const { uwsDoor } = await import('./uws.js')
    return { ok: true, loaded: { engine: 'uws', open: uwsDoor, slowerBecause: undefined } }
  } catch (error) {
    const detail = `uWebSockets.js does not load on Node ${process.versions.node}, ${process.platform} ${process.arch} (${reasonOf(error)})`
    if (choice === 'uws')
      return { ok: false, detail: `${detail}; ${faster}; or set SERVICE_HTTP_ENGINE=auto` }
    return { ok: true, loaded: await nodeEngine(`${detail}; ${faster}`) }
  }
}

async function nodeEngine(slowerBecause: string | undefined): Promise<LoadedEngine> {
  const { nodeDoor } = await import('./node.js')
  return { engine: 'node', open: nodeDoor, slowerBecause }
}

/** What kind of fault it is: what the package says in many lines is about each system there is. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  if (text.includes('supports only')) return 'it has no binary for it'
  return text.split('\n')[0] ?? text
}
