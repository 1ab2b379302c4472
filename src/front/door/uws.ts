import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type * as Library from 'uWebSockets.js'
import { assert } from '../../base/assert.js'
import { limits } from '../../base/limits/limits.js'
import { packageFile } from '../../base/version.js'
import type { DoorOptions, HttpDoor } from './door.js'

/*
 * uWebSockets.js. It reads the size of a header block from the environment as it loads, so it is loaded after that is
 * set. This is the only file that knows it.
 */
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(limits.headerBlockBytesMax)
const { App, SSLApp, us_listen_socket_close, us_socket_local_port } = await load()

/**
 * Loads the package that this one depends on; if it has no binary for this Node, the one that was installed beside this
 * package, if there is one.
 * @throws what the first has thrown
 */
async function load(): Promise<typeof Library> {
  try {
    return await import('uWebSockets.js')
  } catch (error) {
    try {
      const beside = createRequire(new URL('../../package.json', packageFile())).resolve('uWebSockets.js')
      const library: typeof Library = await import(pathToFileURL(beside).href)
      return library
    } catch {
      // There is none, or it does not load either: the fault of the first says more.
      throw error
    }
  }
}

/** What the types of the library leave out: by these an app hands its connections on to apps of other threads. */
interface SharingApp {
  getDescriptor(): number
  addChildAppDescriptor(descriptor: number): void
}

function canShare(app: object): app is SharingApp {
  return 'getDescriptor' in app && 'addChildAppDescriptor' in app
}

function sharing(app: object): SharingApp {
  assert(canShare(app), 'a port is shared where the library can')
  return app
}

/** Whether doors of several threads can share a port. */
export function uwsShares(): boolean {
  const app = App()
  app.close()
  return canShare(app)
}

/**
 * A door of uWebSockets.js.
 * @throws Error when the certificate cannot be read
 */
export function uwsDoor({ tls }: Pick<DoorOptions, 'tls'>): HttpDoor {
  const app = tls === undefined ? App() : SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile })
  let stopListening = () => {}
  return {
    route(method, pattern, handler) {
      app[method](pattern, handler)
    },
    onConnection(handler) {
      app.filter(handler)
    },
    listen: (host, port, shared) =>
      new Promise((resolve) => {
        app.listen(host, port, (socket) => {
          if (socket === false) return resolve(undefined)
          // Whoever has others to share with hands each connection on, in turn, and is one of them itself.
          if (shared) sharing(app).addChildAppDescriptor(sharing(app).getDescriptor())
          stopListening = () => us_listen_socket_close(socket)
          resolve(us_socket_local_port(socket))
        })
      }),
    takeShare: () => Promise.resolve(sharing(app).getDescriptor()),
    shareWith: (other) => sharing(app).addChildAppDescriptor(other),
    stopListening: () => {
      stopListening()
      stopListening = () => {}
    },
    close: () => app.close(),
  }
}
