import { Type } from 'typebox'
import type { FileRoute, PageName, RouteBase } from './route.js'

/** A page may only use its own files and send requests to this server (docs/adr/0042-console-files.md). */
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

/** Sent with every file of a page and with redirects to the page. */
export const pageHeaders = [
  ['Content-Security-Policy', policy],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
] as const

/** The file name of the page itself. No other file has this name, because their names contain a hash. */
export const pageFile = 'index.html'

/** Ignores unknown query parameters: browsers and links on other pages add their own. */
export const publicPage = { method: 'get', scope: 'none', anyQuery: true } satisfies Partial<RouteBase>

/** The routes of a page: GET /PAGE for the page, and GET /PAGE/NAME-HASH.EXT for its files. */
export function pageRoutes(page: PageName, summaries: { page: string; file: string }): FileRoute[] {
  const shared = { kind: 'file', page, ...publicPage, errors: ['not_found'], headers: pageHeaders } as const
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
            description: 'The page has not changed since the version in `If-None-Match`',
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
        path: {
          file: Type.String({
            minLength: 1,
            description: 'A file that the page at /console refers to',
            example: 'main-4fJx2Qab.js',
          }),
        },
        answers: {
          200: { mediaType: 'text/javascript', description: 'JavaScript, CSS or SVG, by its name' },
          304: {
            mediaType: 'text/javascript',
            description: 'The file has not changed since the version in `If-None-Match`',
          },
        },
      },
      toName: ({ params: [name = ''] }) => (name === pageFile ? '' : name),
      // The name changes with the content.
      cacheControl: 'public, max-age=31536000, immutable',
    },
  ]
}
