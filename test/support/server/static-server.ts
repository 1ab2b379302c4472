import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join } from 'node:path'

/** A static server for this repository. */
export interface StaticServer {
  /** For example `http://127.0.0.1:12345`. */
  origin: string
  stop(): void
}

const root = join(import.meta.dirname, '../../..')
const types: Record<string, string> = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
}

/**
 * Serves pages, scripts and styles of the repository, like `python3 -m http.server`.
 * @param rootPage the page at `/`
 */
export async function startStaticServer(rootPage = ''): Promise<StaticServer> {
  const server = createServer(async (request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://static')
    if (pathname === '/') return response.writeHead(200, { 'content-type': 'text/html' }).end(rootPage)
    if (await isOpenFolder(pathname)) {
      return response.writeHead(301, { location: `${pathname}/${search}` }).end()
    }
    const path = pathname.endsWith('/') ? `${pathname}index.html` : pathname
    const type = types[extname(path)]
    const bytes = type === undefined ? undefined : await readFile(join(root, path)).catch(() => undefined)
    if (type === undefined || bytes === undefined) return response.writeHead(404).end()
    return response.writeHead(200, { 'content-type': type }).end(bytes)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  return {
    origin: `http://127.0.0.1:${address.port}`,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Whether a path names a folder without the trailing slash that relative addresses need. */
async function isOpenFolder(pathname: string): Promise<boolean> {
  if (pathname.endsWith('/') || extname(pathname) !== '') return false
  const found = await stat(join(root, pathname)).catch(() => undefined)
  return found?.isDirectory() === true
}
