import { createHash } from 'node:crypto'
import { markup } from './docs-page/markup.js'
import { baseScript } from './docs-page/script-base.js'
import { operationScript } from './docs-page/script-operation.js'
import { pageScript } from './docs-page/script-page.js'
import { schemaScript } from './docs-page/script-schema.js'
import { tryScript } from './docs-page/script-try.js'
import { operationsStyle } from './docs-page/style-operations.js'
import { style } from './docs-page/style.js'

const wholeStyle = style + operationsStyle
const wholeScript = `'use strict';(() => {${baseScript}${schemaScript}${operationScript}${tryScript}${pageScript}})()`

const icon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='8' " +
  "fill='%230a7558'/%3E%3Cpath d='M10 5c0 7 12 7 12 11s-12 4-12 11M22 5c0 7-12 7-12 11s12 4 12 11' fill='none' " +
  "stroke='%23fff' stroke-width='2.6' stroke-linecap='round'/%3E%3C/svg%3E"

/** The page at /docs; it reads /openapi.json and needs nothing from another host. */
export const docsPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Strandfast API</title>
<meta name="description" content="Every operation of this server, with examples and a form to try it">
<link rel="icon" href="${icon}">
<style>${wholeStyle}</style>
</head>
<body>${markup}<script>${wholeScript}</script></body>
</html>
`

/** The Content-Security-Policy of the page: its own style and script by their digests, requests to this server only. */
export const docsPagePolicy = [
  "default-src 'none'",
  `style-src ${digestOf(wholeStyle)}`,
  `script-src ${digestOf(wholeScript)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** What lets a policy name an inline part (CSP level 3, 2.3.1). */
function digestOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}
