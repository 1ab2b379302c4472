import { docsPage, docsPagePolicy } from './docs-page.js'
import type { HandlerRoute } from './route.js'

/** GET /openapi.json: OpenAPI 3.1, made from the schemas that validate. */
const openApi: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/openapi.json',
  scope: 'none',
  anyQuery: true,
  bodyBytesMax: 0,
  compressed: true,
  errors: [],
  docs: {
    summary: 'This interface as OpenAPI 3.1',
    tag: 'Operation',
    answers: { 200: { mediaType: 'application/json', description: 'OpenAPI 3.1' } },
  },
  handle: async (_request, context) => ({
    status: 200,
    body: [await context.openApi()],
    lasting: true,
  }),
}

const pageBytes = Buffer.from(docsPage)

/** GET /docs: the same for people; the page needs nothing from another host. */
const page: HandlerRoute = {
  kind: 'handler',
  method: 'get',
  path: '/docs',
  scope: 'none',
  anyQuery: true,
  bodyBytesMax: 0,
  compressed: true,
  errors: [],
  docs: {
    summary: 'This interface as a page',
    tag: 'Operation',
    answers: { 200: { mediaType: 'text/html', description: 'HTML' } },
  },
  handle: async () => ({
    status: 200,
    body: [pageBytes],
    lasting: true,
    contentType: 'text/html; charset=utf-8',
    headers: [
      ['Content-Security-Policy', docsPagePolicy],
      ['X-Content-Type-Options', 'nosniff'],
    ],
  }),
}

export const docsRoutes = [openApi, page]
