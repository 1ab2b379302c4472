/**
 * Writes the documents that are made from the code, from the build in dist, and the parts of the page on performance
 * and of guarantees that are made from recorded runs. `--check` writes nothing and ends 1 with the name of each document that differs.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** [the document, the built module that it is made from, what makes its text of that module]. */
const generators = [
  ['docs/errors.md', '../dist/src/base/errors.js', errorsDocument],
  ['docs/config.md', '../dist/src/settings/config.js', configDocument],
  ['docs/openapi.json', '../dist/src/front/http/openapi/document.js', openApiText],
]

const madeFrom = (source) => `<!-- Made from ${source} by \`npm run generate\`. Change it there. -->`

const cell = (value) => String(value).replaceAll('|', '\\|').replaceAll('\n', ' ')
const code = (value) => (value === undefined || value === '' ? '' : `\`${cell(value)}\``)

function table(heads, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n')
}

function errorsDocument({ errorCatalogue }) {
  const rows = Object.entries(errorCatalogue).map(([name, { status, title }]) => [
    code(name),
    status,
    cell(title),
  ])
  return `${madeFrom('src/base/errors.ts')}

# Errors

Every refusal is an \`application/problem+json\` document (RFC 9457). Its \`code\` is one of these and stays the same
from version to version; its \`detail\` says what was expected of this very request.

${table(['Code', 'Status', 'Meaning'], rows)}
`
}

/** A default that is not a fixed value (made at the first start, taken from the machine) is described in words. */
function defaultOf({ default: value, defaultText }) {
  if (defaultText === undefined || defaultText === String(value)) return code(value)
  return cell(defaultText)
}

function configDocument({ settings }) {
  const list = Array.isArray(settings)
    ? settings
    : Object.entries(settings).map(([name, setting]) => ({ name, ...setting }))
  const rows = list.map((setting) => [
    code(setting.name),
    defaultOf(setting),
    cell(setting.unit ?? ''),
    cell(setting.allowed ?? ''),
    cell(setting.description),
  ])
  return `${madeFrom('src/settings/config.ts')}

# Settings

Settings come from the environment. Wrong ones are reported all together and the server does not start (exit 78);
\`strandfast check\` reports them without starting. All but secrets are flags of \`serve\`, \`check\` and \`doctor\` too,
which take precedence: \`SERVICE_DATA_DIR\` is \`--data-dir\`.

${table(['Name', 'Default', 'Unit', 'Allowed', 'What it does'], rows)}
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

async function generate(onlyCheck) {
  const made = await Promise.all(
    generators.map(async ([path, built, make]) => [
      path,
      await make(await import(new URL(built, import.meta.url))),
    ]),
  )
  const { recordedPerformanceDocuments } = await import('./performance/documents.mjs')
  const { campaignDocuments } = await import('./campaign/document.mjs')
  made.push(...recordedPerformanceDocuments(), ...campaignDocuments())
  const differing = made.filter(([path, text]) => readDocument(path) !== text)
  for (const [path, text] of differing) {
    if (onlyCheck) console.error(`${path} differs from what it is made from: run npm run generate`)
    else {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text)
    }
  }
  return onlyCheck ? differing.length : 0
}

process.exitCode = (await generate(process.argv.includes('--check'))) === 0 ? 0 : 1
