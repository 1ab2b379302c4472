import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../support/server/free-port.js'

/*
 * The README's tour, run as a reader runs it: every block of commands and of code from top to bottom in one shell, and
 * what each prints held to what the README says it prints. In documented output, `…` stands for any text.
 */

/** One block that is run, and what it is said to print. */
interface Step {
  heading: string
  language: 'sh' | 'js'
  code: string
  printed?: { language: 'json' | 'text'; text: string }
}

/** The most that the whole tour may take, milliseconds. */
const TOUR_MS = 50_000

const tour = /\n## A tour of five minutes\n(.*?)\n## /s.exec(readFileSync('README.md', 'utf8'))?.[1] ?? ''

/** The blocks of a page in order; a json or text block belongs to the commands before it. */
function stepsOf(page: string): Step[] {
  const steps: Step[] = []
  let heading = ''
  for (const [, title, language, text = ''] of page.matchAll(/^### ([^\n]*)$|^```(\w+)\n(.*?)^```$/gms)) {
    if (title !== undefined) heading = title
    else if (language === 'sh' || language === 'js') steps.push({ heading, language, code: text })
    else {
      const last = steps.at(-1)
      if ((language !== 'json' && language !== 'text') || last === undefined || last.printed !== undefined)
        throw new Error(`Expected sh, js, or their one output, got ${language} in "${heading}"`)
      last.printed = { language, text }
    }
  }
  return steps
}

/** One script of all steps, which ends at the first command that fails; each step prints to a file of its own. */
function scriptOf(steps: readonly Step[], directory: string): string {
  const parts = steps.map(({ language, code }, index) => {
    const file = join(directory, `step-${index}`)
    if (language === 'sh') return `{\n${code}} > '${file}.out'\n`
    writeFileSync(`${file}.mjs`, code)
    // By standard input, code is resolved as if it stood in this folder.
    return `node --input-type=module < '${file}.mjs' > '${file}.out'\n`
  })
  // Whatever stops the tour, its server goes with it.
  return [
    'set -eu -o pipefail\n',
    `trap 'kill "\${server:-}" 2> /dev/null || true; wait' EXIT\n`,
    ...parts,
  ].join('')
}

async function run(script: string, directory: string): Promise<{ code: number | null; stderr: string }> {
  const env = {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    // The tour keeps its data, and all else that it makes, in a directory that it makes here.
    TMPDIR: directory,
    SERVICE_PORT: String(await freePort()),
  }
  const shell = spawn('bash', ['-c', script], { env, stdio: ['ignore', 'ignore', 'pipe'], timeout: TOUR_MS })
  let stderr = ''
  shell.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()))
  const [code] = await once(shell, 'exit')
  return { code, stderr }
}

/** Whether a printed text is the documented one. */
function fits(documented: string, printed: string): boolean {
  const literal = documented.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${literal.join('.*')}$`, 's').test(printed)
}

/**
 * The printed value, with each text that fits its documented pattern put back to the pattern, and times, which differ
 * at every run, to those documented: so that the two compare as equal where they agree, and show where they do not.
 */
function folded(printed: unknown, documented: unknown): unknown {
  if (typeof printed === 'string' && typeof documented === 'string') {
    return fits(documented, printed) ? documented : printed
  }
  if (Array.isArray(printed)) {
    const items: unknown[] = Array.isArray(documented) ? documented : []
    return printed.map((item, index) => folded(item, items[index]))
  }
  if (typeof printed !== 'object' || printed === null) return printed
  const members = new Map(typeof documented === 'object' ? Object.entries(documented ?? {}) : [])
  return Object.fromEntries(
    Object.entries(printed).map(([name, value]) => [
      name,
      name.endsWith('_ms') && typeof value === 'number'
        ? members.get(name)
        : folded(value, members.get(name)),
    ]),
  )
}

function foldedLines(printed: string, documented: string): string[] {
  const patterns = documented.split('\n')
  return printed
    .replaceAll('\r', '')
    .split('\n')
    .map((line, index) => {
      const pattern = patterns[index]
      return pattern !== undefined && fits(pattern, line) ? pattern : line
    })
}

const steps = stepsOf(tour)

describe("the README's tour", () => {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-readme-'))
  let outcome: { code: number | null; stderr: string }

  beforeAll(async () => {
    outcome = await run(scriptOf(steps, directory), directory)
  })

  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it('has commands, code and output to hold it to', () => {
    expect(steps.length).toBeGreaterThan(20)
    expect(steps.some(({ language }) => language === 'js')).toBe(true)
    expect(steps.filter(({ printed }) => printed !== undefined).length).toBeGreaterThan(15)
  })

  it('runs from top to bottom without a command that fails', () => {
    expect(outcome.code, outcome.stderr).toBe(0)
  })

  it.each(steps.map((step, index) => ({ ...step, index })).filter(({ printed }) => printed !== undefined))(
    'prints what it says: $heading, block $index',
    ({ printed, index }) => {
      const text = readFileSync(join(directory, `step-${index}.out`), 'utf8')
      const documented = printed?.text ?? ''
      if (printed?.language === 'json') {
        const expected: unknown = JSON.parse(documented)
        expect(folded(JSON.parse(text), expected)).toEqual(expected)
      } else expect(foldedLines(text, documented)).toEqual(documented.split('\n'))
    },
  )
})

describe('the comparison with documented output', () => {
  it('takes any text for …, and nothing else', () => {
    expect(fits('sha256:…', 'sha256:ab12')).toBe(true)
    expect(fits('sha256:…', 'md5:ab12')).toBe(false)
    expect(fits('a.c', 'abc')).toBe(false)
  })

  it('finds a member that is missing, new or another', () => {
    const documented = { id: '…', seq: 1, created_at_ms: 5 }
    expect(folded({ id: 'ab', seq: 1, created_at_ms: 77 }, documented)).toEqual(documented)
    expect(folded({ id: 'ab', created_at_ms: 77 }, documented)).not.toEqual(documented)
    expect(folded({ id: 'ab', seq: 1, created_at_ms: 77, more: 1 }, documented)).not.toEqual(documented)
    expect(folded({ id: 'ab', seq: 2, created_at_ms: 77 }, documented)).not.toEqual(documented)
    expect(folded({ id: 7, seq: 1, created_at_ms: 77 }, documented)).not.toEqual(documented)
  })

  it('finds a line that is missing or new', () => {
    expect(foldedLines('1\n', '1\n2\n')).not.toEqual(['1', '2', ''])
    expect(foldedLines('1\n2\n3\n', '1\n2\n')).not.toEqual(['1', '2', ''])
  })
})
