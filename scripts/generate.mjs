/**
 * Writes the documents that are generated from the build in dist, and the parts of pages that are generated
 * from recorded runs. `--check` writes nothing and exits with 1 and the name of each document that differs.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { format } from 'oxfmt'
import { table } from './markdown-table.mjs'

/** [document, built module, function that renders it] */
const generators = [
  ['docs/errors.md', '../dist/src/base/errors.js', errorsDocument],
  ['docs/config.md', '../dist/src/settings/config.js', configDocument],
  ['docs/scopes.md', '../dist/src/wire/api-keys.js', scopesDocument],
  ['docs/openapi.json', '../dist/src/front/http/openapi/document.js', openApiText],
]

const madeFrom = (source) => `<!-- Made from ${source} by \`npm run generate\`. Change it there. -->`

const cell = (value) => String(value).replaceAll('|', '\\|').replaceAll('\n', ' ')
const code = (value) => (value === undefined || value === '' ? '' : `\`${cell(value)}\``)

function errorsDocument({ errorCatalogue }) {
  const rows = Object.entries(errorCatalogue).map(([name, { status, title }]) => [
    code(name),
    status,
    cell(title),
  ])
  return `${madeFrom('src/base/errors.ts')}

# Errors

Every refusal is an \`application/problem+json\` document (RFC 9457). Its \`code\` is one of these and stays the
same from version to version; its \`detail\` describes the error of this request.

${table(['Code', 'Status', 'Meaning'], rows)}
`
}

/**
 * A default that is not a fixed value (generated at the first start, taken from the machine) is described in
 * words.
 */
function defaultOf({ default: value, defaultText }) {
  return defaultText === undefined || defaultText === String(value) ? code(value) : defaultText
}

function configDocument({ settings }) {
  const list = Array.isArray(settings)
    ? settings
    : Object.entries(settings).map(([name, setting]) => ({ name, ...setting }))
  const items = list.map((setting) => {
    const { name, unit, allowed, description } = setting
    const facts = [
      `Default: ${defaultOf(setting)}`,
      ...(unit === undefined ? [] : [`Unit: ${unit}`]),
      `Allowed: ${allowed}`,
    ]
    return `- **\`${name}\`**: ${description} ${facts.join('. ')}.`
  })
  return `${madeFrom('src/settings/config.ts')}

# Settings

Settings come from the environment. An empty variable counts as not set. If any are invalid, all are reported and the server does not start (exit
78); \`strandfast check\` reports them without starting. All but secrets are also flags of \`serve\`, \`check\` and
\`doctor\`, which take precedence: \`SERVICE_DATA_DIR\` is \`--data-dir\`.

${items.join('\n')}
`
}

async function scopesDocument({ scopes, scopeDescriptions }) {
  const { allRoutes } = await import('../dist/src/front/routes/routes.js')
  const routes = allRoutes('default').filter(({ scope }) => scopes.includes(scope))
  const operations = (scope) =>
    routes
      .filter((route) => route.scope === scope || route.orScopes?.includes(scope))
      .map(({ method, path }) => `\`${method === 'del' ? 'DELETE' : method.toUpperCase()} ${path}\``)
  const items = scopes.map((scope) => `- ${code(scope)}: ${operations(scope).join(', ')}`)
  return `${madeFrom('src/wire/api-keys.ts')}

# Scopes of API keys

An API key has scopes, and optionally a list of agents (names, or a prefix and \`*\`) that it reaches. The root
key may do everything. Users have no scopes: [row policies](ROW-POLICIES.md) decide what they reach.

${table(
  ['Scope', 'Allows its holder to'],
  scopes.map((scope) => [code(scope), cell(scopeDescriptions[scope])]),
)}

## Operations

${items.join('\n')}
`
}

/** The document as a server with the usual default agent serves it. */
async function openApiText({ openApiDocument }) {
  const { allRoutes } = await import('../dist/src/front/routes/routes.js')
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  return `${JSON.stringify(openApiDocument(allRoutes('default'), version), null, 2)}\n`
}

function readDocument(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** The generated parts of a page: the whole page, or what is between its markers. */
const madeParts = /^<!-- Made from[^]*|(?<=<!-- made from .* -->\n\n)[^]*?(?=\n\n<!-- end: )/g

/** The page with its generated parts as the formatter writes them. */
async function formatted(path, page) {
  let written = page
  for (const [part] of page.matchAll(madeParts)) {
    const { code: text, errors } = await format(path, part, { printWidth: 110, proseWrap: 'always' })
    if (errors.length > 0) throw new Error(`${path} cannot be formatted: ${errors[0].message}`)
    written = written.replace(part, () => (part.endsWith('\n') ? text : text.trimEnd()))
  }
  return written
}

async function generate(onlyCheck) {
  const documents = await Promise.all(
    generators.map(async ([path, built, render]) => [
      path,
      await render(await import(new URL(built, import.meta.url))),
    ]),
  )
  const { recordedPerformanceDocuments } = await import('./performance/documents.mjs')
  const { campaignDocuments } = await import('./campaign/document.mjs')
  documents.push(...recordedPerformanceDocuments(), ...campaignDocuments())
  for (const document of documents)
    if (document[0].endsWith('.md')) document[1] = await formatted(...document)
  const differing = documents.filter(([path, text]) => readDocument(path) !== text)
  for (const [path, text] of differing) {
    if (onlyCheck) console.error(`${path} differs from its source: run npm run generate`)
    else {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text)
    }
  }
  return onlyCheck ? differing.length : 0
}

process.exitCode = (await generate(process.argv.includes('--check'))) === 0 ? 0 : 1
