import { publicPage, pageHeaders, pageRoutes } from './page-files.js'
import type { HandlerRoute } from './route.js'

/** GET /: redirects to the console, below any prefix of a proxy. */
const start: HandlerRoute = {
  kind: 'handler',
  ...publicPage,
  path: '/',
  docs: {
    summary: 'Redirect to the console',
    tag: 'Operation',
    answers: { 302: { mediaType: 'text/plain', description: 'A redirect: only `Location` matters' } },
  },
  handle: async () => ({
    status: 302,
    body: '',
    contentType: 'text/plain',
    headers: [['Location', 'console'], ['Cache-Control', 'no-cache'], ...pageHeaders],
  }),
}

/** GET /console and its files. */
export const consoleRoutes = [
  start,
  ...pageRoutes('console', { page: 'The console, a web page', file: 'A file of the console' }),
]
