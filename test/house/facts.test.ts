import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { removedSettings, settings } from '../../src/settings/config.js'
import { codeBelow, textFiles } from './tree.js'

/*
 * Names and figures in documents are those of the code: settings with their defaults, metrics, log lines,
 * commands and files.
 */

const read = (path: string) => readFileSync(path, 'utf8')

const pages = textFiles().filter((path) => /^(?:README|CHANGELOG|docs\/.*)\.md$/.test(path))
const defaults = new Map<string, unknown>(Object.values(settings).map((one) => [one.name, one.default]))

/** The settings that a text names and that do not exist and never did. A name before an ellipsis stands for several. */
function unknownSettings(text: string): string[] {
  const named = text.matchAll(/\bSERVICE_[A-Z_]*[A-Z](?!\w)/g)
  return [...named].flatMap(([name]) => (defaults.has(name) || name in removedSettings ? [] : [name]))
}

const bytes: Readonly<Record<string, number>> = { '': 1, KiB: 1_024, MiB: 1_048_576 }

/** The wrong defaults of a text, which gives them after the name of the setting: `SERVICE_NAME` (256 MiB). */
function wrongDefaults(text: string): string[] {
  const stated = text
    .replaceAll(/\s+/g, ' ')
    .matchAll(/`(SERVICE_\w+)` \(\**(\d[\d,]*)(?: (KiB|MiB))?(?![\d.])/g)
  return [...stated].flatMap(([, name = '', digits = '', unit = '']) =>
    Number(digits.replaceAll(',', '')) * (bytes[unit] ?? 0) === defaults.get(name)
      ? []
      : [`${name}: ${digits} ${unit}`],
  )
}

/** The text of a page from a heading to the next one of the same level. */
function sectionOf(page: string, heading: string): string {
  const [, section = ''] = read(page).split(`\n## ${heading}\n`)
  return section.split('\n## ')[0] ?? ''
}

/** The names in code at the beginning of each item of a list, before its first colon or parenthesis. */
function namesOf(list: string): string[] {
  return list
    .split(/^- /m)
    .slice(1)
    .flatMap((item) => [...(/^(?:`[^`]+`,?\s*)+/.exec(item)?.[0].matchAll(/`([^`]+)`/g) ?? [])])
    .map(([, name = '']) => name)
}

/** The metrics of the code without the prefix of all of them. */
function metricsOf(code: string): string[] {
  const whole = [...code.matchAll(/'strandfast_(\w+)'/g)].map(([, name = '']) => name)
  const prefixed = code.split(/^ {2}#/m).flatMap((method) => {
    const [, prefix] = /strandfast_(\w+_)\$\{name\}/.exec(method) ?? []
    const calls = method.matchAll(/\b(?:perFront|perPool|show)\(\s*'(\w+)'/g)
    return prefix === undefined ? [] : [...calls].map(([, name = '']) => `${prefix}${name}`)
  })
  return [...whole, ...prefixed].sort()
}

describe('a setting in a document', () => {
  it.each(pages)('exists, and has the default that is stated: %s', (page) => {
    const text = read(page)
    expect([...unknownSettings(text), ...wrongDefaults(text)]).toEqual([])
  })

  it('is read on every page', () => {
    expect(pages).toEqual(
      expect.arrayContaining(['README.md', 'docs/config.md', 'docs/adr/0044-cluster-log.md']),
    )
  })
})

describe('docs/MONITORING.md', () => {
  it('lists each metric once', () => {
    const rows = sectionOf('docs/MONITORING.md', 'Metrics').matchAll(/^\| `(\w+)`/gm)
    const listed = [...rows].map(([, name = '']) => name).sort()
    expect(listed).toEqual(metricsOf(read('src/front/metrics/metrics.ts')))
  })

  it('lists only log lines of the code', () => {
    const [lines = ''] = sectionOf('docs/MONITORING.md', 'Log lines').split('\nThe command `serve` itself')
    const code = codeBelow('src', 'workers').map(read).join('\n')
    const listed = namesOf(lines)
    expect(listed.length).toBeGreaterThan(30)
    expect(listed.filter((text) => !code.includes(`'${text}'`) && !code.includes(`"${text}"`))).toEqual([])
  })
})

/** The paths of a text that do not exist. Paths of code may lack their beginning and `.ts`. */
function missingPaths(text: string): string[] {
  const named = [...text.matchAll(/`([a-z][\w.-]*(?:\/[\w.-]+)+)`/g)].map(([, path = '']) => path)
  const starts = ['', 'src/', 'src/cluster/', 'workers/']
  return named.filter(
    (path) => !starts.some((start) => existsSync(start + path) || existsSync(`${start}${path}.ts`)),
  )
}

describe('docs/ARCHITECTURE.md', () => {
  it('names files and folders that exist', () => {
    expect(missingPaths(read('docs/ARCHITECTURE.md'))).toEqual([])
  })
})

describe('docs/OPERATIONS.md', () => {
  it('lists each command, and each of a cluster', () => {
    const commands = [...read('src/cli/main.ts').matchAll(/^ {2}(\w+): \[/gm)].map(([, name]) => name)
    const ofCluster = [...read('src/cli/cluster.ts').matchAll(/^ {4}usage: '([\w-]+)/gm)].map(
      ([, name]) => name,
    )
    const listed = namesOf(sectionOf('docs/OPERATIONS.md', 'Command line')).map((name) => {
      const [first, second] = name.split(' ')
      return first === 'cluster' ? second : first
    })
    expect(ofCluster).toContain('accept-loss')
    expect(listed.sort()).toEqual([...commands.filter((name) => name !== 'cluster'), ...ofCluster].sort())
  })
})

describe('a planted error', () => {
  it.each(['`SERVICE_NONE`', 'SERVICE_PORTS=1', '`SERVICE_PORT_`, `SERVICE_POR`'])(
    'is found: the unknown setting in %s',
    (text) => expect(unknownSettings(text)).toHaveLength(1),
  )

  it.each(['`SERVICE_MIN_FREE_BYTES` (255 MiB)', '`SERVICE_RATE_LIMIT_RPS`\n(**1,000 a second**)'])(
    'is found: the wrong default in %s',
    (text) => expect(wrongDefaults(text)).toHaveLength(1),
  )

  it('is not found in right defaults, and in names of several settings', () => {
    const text =
      '`SERVICE_MIN_FREE_BYTES` (256 MiB), `SERVICE_RATE_LIMIT_RPS` (100), `SERVICE_OAUTH_GOOGLE_…`'
    expect([...unknownSettings(text), ...wrongDefaults(text)]).toEqual([])
  })

  it('is found: a file that does not exist', () => {
    const text =
      '`front/http/none`, `front/http/body`, `node/shards`, `workers/shard`, `docs/NONE.md`, `none`'
    expect(missingPaths(text)).toEqual(['front/http/none', 'docs/NONE.md'])
  })

  it('is found: a metric or an item that one list does not have', () => {
    expect(
      metricsOf("  #a() { x('strandfast_a') }\n  #b() { `strandfast_pool_${name}`; show(\n'b') }"),
    ).toEqual(['a', 'pool_b'])
    expect(namesOf('- `one`, `two` (warn): `three`.\n- `four`: text\n- five `six`\n')).toEqual([
      'one',
      'two',
      'four',
    ])
  })
})
