import { forEveryone, pageRoutes } from './page-files.js'
import type { HandlerRoute } from './route.js'

/** GET /openapi.json: OpenAPI 3.1, made from the schemas that validate. */
const openApi: HandlerRoute = {
  kind: 'handler',
  ...forEveryone,
  path: '/openapi.json',
  compressed: true,
  docs: {
    summary: 'This interface as OpenAPI 3.1',
    tag: 'Operation',
    answers: { 200: { mediaType: 'application/json', description: 'OpenAPI 3.1' } },
  },
  handle: async (_request, context) => ({
    status: 200,
    body: [await context.openApi()],
    headers: [['Cache-Control', 'no-cache']],
    lasting: true,
  }),
}

/** GET /openapi.json; GET /docs and its files, the same for people. */
export const docsRoutes = [
  openApi,
  ...pageRoutes('docs', { page: 'This interface as a page', file: 'A file of this page' }),
]
