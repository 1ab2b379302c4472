import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as Library from 'uWebSockets.js'
import { assert } from '../../base/assert.js'
import { limits } from '../../base/limits/limits.js'
import { readPem } from '../../base/pem.js'
import { packageFile } from '../../base/version.js'
import { mendLibrary } from './library-code.js'
import type { ListenerOptions, HttpListener, TlsFiles } from './http-listener.js'

/*
 * The only file that uses uWebSockets.js. The library reads the size of a header block from the environment
 * when it loads, so it is loaded after that is set.
 */
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(limits.headerBlockBytesMax)
const { App, SSLApp, us_listen_socket_close, us_socket_local_port } = await load()
if (!mendLibrary())
  throw new Error('on this system the code of the library cannot be mended, which would lose data')

/**
 * Loads the package that this one depends on. If it has no binary for this Node version, loads the one that
 * was installed beside this package, if there is one.
 * @throws the error of the first attempt
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
      // There is none, or it does not load either: the first error says more.
      throw error
    }
  }
}

/** Missing in the library's types: methods to pass connections to apps of other threads. */
interface SharingApp {
  getDescriptor(): number
  addChildAppDescriptor(descriptor: number): void
}

function canShare(app: object): app is SharingApp {
  return 'getDescriptor' in app && 'addChildAppDescriptor' in app
}

function asSharingApp(app: object): SharingApp {
  assert(canShare(app), 'the library supports shared ports')
  return app
}

/** Whether listeners of several threads can share a port. */
export function uwsCanSharePort(): boolean {
  const app = App()
  app.close()
  return canShare(app)
}

/**
 * Creates a listener of uWebSockets.js.
 * @throws Error if the certificate cannot be read
 */
export function uwsListener({ tls }: Pick<ListenerOptions, 'tls'>): HttpListener {
  const app = tls === undefined ? App() : tlsApp(tls)
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
          // The app that listens distributes connections round-robin, and is itself one of the receivers.
          if (shared) asSharingApp(app).addChildAppDescriptor(asSharingApp(app).getDescriptor())
          stopListening = () => us_listen_socket_close(socket)
          resolve(us_socket_local_port(socket))
        })
      }),
    takeShare: () => Promise.resolve(asSharingApp(app).getDescriptor()),
    shareWith: (listenerId) => asSharingApp(app).addChildAppDescriptor(listenerId),
    stopListening: () => {
      stopListening()
      stopListening = () => {}
    },
    close: () => app.close(),
  }
}

/** The library reads files only, so a file with a byte order mark is copied for the moment of reading. */
function tlsApp({ certFile, keyFile }: TlsFiles): Library.TemplatedApp {
  const [cert, key] = [readPem(certFile), readPem(keyFile)]
  if (!cert.marked && !key.marked) return SSLApp({ cert_file_name: certFile, key_file_name: keyFile })
  const folder = mkdtempSync(join(tmpdir(), 'strandfast-tls-'))
  try {
    const [certCopy, keyCopy] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    writeFileSync(certCopy, cert.text)
    writeFileSync(keyCopy, key.text, { mode: 0o600 })
    return SSLApp({ cert_file_name: certCopy, key_file_name: keyCopy })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
