import type { FileRoute, HandlerRoute, RouteBase } from './route.js'

/** What the page may do: nothing but its own files and requests to this server (docs/adr/0042-console-files.md). */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types console-worker',
].join('; ')

const headers = [
  ['Content-Security-Policy', policy],
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
] as const

/** The name of the page among the files of the console. No other file can have it: theirs contain a hash. */
export const consolePage = 'index.html'

/** Browsers add parameters of their own, and links of other pages: they change nothing. */
const forEveryone = { method: 'get', scope: 'none', anyQuery: true } satisfies Partial<RouteBase>

/** GET /: leads to the console, below whatever prefix a proxy serves it. */
const start: HandlerRoute = {
  kind: 'handler',
  ...forEveryone,
  path: '/',
  bodyBytesMax: 0,
  errors: [],
  docs: {
    summary: 'Leads to the console',
    tag: 'Operation',
    answers: { 302: { mediaType: 'text/plain', description: 'Nothing but `Location`, the console' } },
  },
  handle: async () => ({
    status: 302,
    body: '',
    contentType: 'text/plain',
    headers: [['Location', 'console'], ['Cache-Control', 'no-cache'], ...headers],
  }),
}

/** GET /console: the page. */
const page: FileRoute = {
  kind: 'file',
  ...forEveryone,
  path: '/console',
  errors: ['not_found'],
  docs: {
    summary: 'The console, a page for people',
    tag: 'Operation',
    answers: {
      200: { mediaType: 'text/html', description: 'HTML' },
      304: { mediaType: 'text/html', description: 'The page that `If-None-Match` names is the present one' },
    },
  },
  toName: () => consolePage,
  cacheControl: 'no-cache',
  headers,
}

/** GET /console/NAME-HASH.EXT: what the page consists of. Another content has another name. */
const part: FileRoute = {
  kind: 'file',
  ...forEveryone,
  path: '/console/:file',
  errors: ['not_found'],
  docs: {
    summary: 'A file of the console',
    tag: 'Operation',
    answers: {
      200: { mediaType: 'text/javascript', description: 'JavaScript, CSS or SVG, by its name' },
      304: {
        mediaType: 'text/javascript',
        description: 'The file that `If-None-Match` names is the present one',
      },
    },
  },
  toName: ({ params: [name = ''] }) => (name === consolePage ? '' : name),
  cacheControl: 'public, max-age=31536000, immutable',
  headers,
}

export const consoleRoutes = [start, page, part]
