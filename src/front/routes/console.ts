import { forEveryone, pageHeaders, pageRoutes } from './page-files.js'
import type { HandlerRoute } from './route.js'

/** GET /: leads to the console, below whatever prefix a proxy serves it. */
const start: HandlerRoute = {
  kind: 'handler',
  ...forEveryone,
  path: '/',
  docs: {
    summary: 'Leads to the console',
    tag: 'Operation',
    answers: { 302: { mediaType: 'text/plain', description: 'Nothing but `Location`, the console' } },
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
  ...pageRoutes('console', { page: 'The console, a page for people', file: 'A file of the console' }),
]
