import { publicPage, pageRoutes } from './page-files.js'
import type { HandlerRoute } from './route.js'

/** GET /openapi.json: OpenAPI 3.1, generated from the validating schemas. */
const openApi: HandlerRoute = {
  kind: 'handler',
  ...publicPage,
  path: '/openapi.json',
  compressed: true,
  docs: {
    summary: 'This API as OpenAPI 3.1',
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

/** GET /openapi.json, and GET /docs with its files, which show the same as a page. */
export const docsRoutes = [
  openApi,
  ...pageRoutes('docs', { page: 'This API as a web page', file: 'A file of this page' }),
]
