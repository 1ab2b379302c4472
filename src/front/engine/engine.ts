import { createPrivateKey } from 'node:crypto'
import { readPem } from '../../base/pem.js'
import type { Config } from '../../settings/config.js'
import type { ListenerOptions, Engine, HttpListener, TlsFiles } from './http-listener.js'

/** How to install uWebSockets.js on a Node version for which the registry's package has no binary. */
const installUws = 'for the faster uWebSockets.js: npm install uNetworking/uWebSockets.js#v20.57.0'

export interface LoadedEngine {
  engine: Engine
  /** Creates a listener; throws if the certificate cannot be read. */
  open(options: ListenerOptions): HttpListener
  /** Why several threads cannot share a port, in one line; undefined if they can. */
  unsharedReason(): string | undefined
  /**
   * Why the faster library is not used and how to install it, in one line; undefined if it is used or this
   * one was requested.
   */
  fallbackReason: string | undefined
}

/** The requested library, or why it does not load and what to do, in one line. */
export type EngineLoading = { ok: true; loaded: LoadedEngine } | { ok: false; detail: string }

/** Loads the requested HTTP library; for `auto` the first that loads. */
export async function loadEngine(choice: Config['httpEngine']): Promise<EngineLoading> {
  if (choice === 'node') return { ok: true, loaded: await nodeEngine(undefined) }
  try {
    const { uwsListener: uwsDoor, uwsCanSharePort: uwsShares } = await import('./uws.js')
    const unshared = 'this version of uWebSockets.js cannot share a port between threads'
    const unsharedBecause = () => (uwsShares() ? undefined : unshared)
    return {
      ok: true,
      loaded: { engine: 'uws', open: uwsDoor, unsharedReason: unsharedBecause, fallbackReason: undefined },
    }
  } catch (error) {
    const reason = shortReason(error)
    const hint = reason === noBinary ? `; ${installUws}` : ''
    const detail = `uWebSockets.js does not load on Node ${process.versions.node}, ${process.platform} ${process.arch} (${reason})${hint}`
    if (choice === 'uws') return { ok: false, detail: `${detail}; or set SERVICE_HTTP_ENGINE=auto` }
    return { ok: true, loaded: await nodeEngine(detail) }
  }
}

/**
 * Why a library refuses a valid certificate and its key, such as one of an algorithm that it does not
 * support, in one line; undefined if it accepts them.
 */
export function tlsRefusal({ engine, open }: LoadedEngine, tls: TlsFiles): string | undefined {
  const path = JSON.stringify(tls.keyFile)
  const unusable = unusableKey(tls.keyFile)
  if (unusable !== undefined) return `${path}, ${unusable}, with which every handshake fails`
  try {
    open({ tls, problem: () => '' }).close()
    return undefined
  } catch (error) {
    const name = engine === 'uws' ? 'uWebSockets.js' : 'node:http'
    return `${path}, which ${name} refuses together with ${tls.certFile}: ${shortReason(error)}`
  }
}

/** The curves of TLS 1.3 for certificates (RFC 8446, 4.2.3), as OpenSSL names them. */
const curves = ['prime256v1', 'secp384r1', 'secp521r1']
const RSA_BITS_MIN = 1024

/** A key that the libraries load, but no client accepts. */
function unusableKey(keyFile: string): string | undefined {
  const { asymmetricKeyDetails: { namedCurve, modulusLength } = {} } = createPrivateKey(readPem(keyFile).text)
  if (namedCurve !== undefined && !curves.includes(namedCurve)) return `a key on ${namedCurve}`
  if (modulusLength !== undefined && modulusLength < RSA_BITS_MIN)
    return `an RSA key of ${modulusLength} bits`
  return undefined
}

async function nodeEngine(slowerBecause: string | undefined): Promise<LoadedEngine> {
  const { nodeListener: nodeDoor } = await import('./node.js')
  return { engine: 'node', open: nodeDoor, unsharedReason: nodeUnsharedReason, fallbackReason: slowerBecause }
}

/**
 * Node shares a port between threads with SO_REUSEPORT since 22.12 and 23.1, where the system distributes the
 * connections.
 */
function nodeUnsharedReason(): string | undefined {
  const { platform, versions } = process
  const [major = 0, minor = 0] = versions.node.split('.').map(Number)
  const supportsReusePort = major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12)
  if (supportsReusePort && platform === 'linux') return undefined
  return `node:http of Node ${versions.node} on ${platform} cannot share a port between threads`
}

const noBinary = 'the package has no binary for it'

/** A short reason: the message of the package lists every supported system in many lines. */
function shortReason(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  if (text.includes('supports only')) return noBinary
  return text.split('\n')[0] ?? text
}
