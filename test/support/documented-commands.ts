import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'

/*
 * Runs the commands and code blocks of a document like a reader, and compares their output with the
 * documented output, in which `…` stands for any text.
 */

/** A block that is run, with its documented output. */
export interface Step {
  heading: string
  language: 'sh' | 'js'
  code: string
  printed?: { language: 'json' | 'text'; text: string }
}

/** The time limit for all blocks of a page, milliseconds. */
const PAGE_MS = 50_000

/** The blocks of a page in order. A json or text block is the output of the block before it. */
export function stepsOf(page: string): Step[] {
  const steps: Step[] = []
  let heading = ''
  for (const [, title, language, text = ''] of page.matchAll(/^##+ ([^\n]*)$|^```(\w+)\n(.*?)^```$/gms)) {
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

/** The exit code of the shell, and its standard error. */
export interface Outcome {
  code: number | null
  stderr: string
}

/**
 * Runs the blocks in order in one shell, until a command fails.
 * @param place `directory` for the outputs; `env`, the whole environment; `cwd`, by default the current one
 */
export async function runSteps(
  steps: readonly Step[],
  place: { directory: string; env: NodeJS.ProcessEnv; cwd?: string },
): Promise<Outcome> {
  const { directory, env, cwd } = place
  const script = scriptOf(steps, directory)
  const shell = spawn('bash', ['-c', script], {
    env,
    cwd,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: PAGE_MS,
  })
  let stderr = ''
  shell.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()))
  const [code] = await once(shell, 'exit')
  return { code, stderr }
}

/** Compares the output of block `index` with its documented output. */
export function expectPrinted(
  directory: string,
  { index, printed }: Pick<Step, 'printed'> & { index: number },
): void {
  const text = readFileSync(join(directory, `step-${index}.out`), 'utf8')
  const documented = printed?.text ?? ''
  if (printed?.language === 'json') {
    const expected: unknown = JSON.parse(documented)
    expect(folded(JSON.parse(text), expected)).toEqual(expected)
  } else expect(foldedLines(text, documented)).toEqual(documented.split('\n'))
}

/** A script of all steps, which ends at the first failure. Each step prints to its own file. */
function scriptOf(steps: readonly Step[], directory: string): string {
  const parts = steps.map(({ language, code }, index) => {
    const file = join(directory, `step-${index}`)
    if (language === 'sh') return `{\n${code}} > '${file}.out'\n`
    writeFileSync(`${file}.mjs`, code)
    // Code from standard input resolves modules from the current folder.
    return `node --input-type=module < '${file}.mjs' > '${file}.out'\n`
  })
  // The server is always stopped at the end.
  return [
    'set -eu -o pipefail\n',
    `trap 'kill "\${server:-}" 2> /dev/null || true; wait' EXIT\n`,
    ...parts,
  ].join('')
}

/** Whether a printed text matches the documented one. */
export function fits(documented: string, printed: string): boolean {
  const literal = documented.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${literal.join('.*')}$`, 's').test(printed)
}

/**
 * The printed value, in which matching texts and all times are replaced by the documented ones, so that a
 * comparison shows only real differences.
 */
export function folded(printed: unknown, documented: unknown): unknown {
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

export function foldedLines(printed: string, documented: string): string[] {
  const patterns = documented.split('\n')
  return printed
    .replaceAll('\r', '')
    .split('\n')
    .map((line, index) => {
      const pattern = patterns[index]
      return pattern !== undefined && fits(pattern, line) ? pattern : line
    })
}
