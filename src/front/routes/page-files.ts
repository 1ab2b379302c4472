import type { FileRoute, PageName, RouteBase } from './route.js'

/** What a page may do: nothing but its own files and requests to this server (docs/adr/0042-console-files.md). */
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

/** Sent with every file of a page, and with what leads there. */
export const pageHeaders = [
  ['Content-Security-Policy', policy],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
] as const

/** The name of the page itself among its files. No other file can have it: theirs contain a hash. */
export const pageFile = 'index.html'

/** Browsers add parameters of their own, and links of other pages: they change nothing. */
export const forEveryone = { method: 'get', scope: 'none', anyQuery: true } satisfies Partial<RouteBase>

/** The routes of a page: GET /PAGE, and GET /PAGE/NAME-HASH.EXT for what it consists of. */
export function pageRoutes(page: PageName, summaries: { page: string; file: string }): FileRoute[] {
  const shared = { kind: 'file', page, ...forEveryone, errors: ['not_found'], headers: pageHeaders } as const
  return [
    {
      ...shared,
      path: `/${page}`,
      docs: {
        summary: summaries.page,
        tag: 'Operation',
        answers: {
          200: { mediaType: 'text/html', description: 'HTML' },
          304: {
            mediaType: 'text/html',
            description: 'The page that `If-None-Match` names is the present one',
          },
        },
      },
      toName: () => pageFile,
      cacheControl: 'no-cache',
    },
    {
      ...shared,
      path: `/${page}/:file`,
      docs: {
        summary: summaries.file,
        tag: 'Operation',
        answers: {
          200: { mediaType: 'text/javascript', description: 'JavaScript, CSS or SVG, by its name' },
          304: {
            mediaType: 'text/javascript',
            description: 'The file that `If-None-Match` names is the present one',
          },
        },
      },
      toName: ({ params: [name = ''] }) => (name === pageFile ? '' : name),
      // Another content has another name.
      cacheControl: 'public, max-age=31536000, immutable',
    },
  ]
}
