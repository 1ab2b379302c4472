import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { inherited } from '../../../scripts/crash-loop/inherited.mjs'

const entry = join(import.meta.dirname, '../../../dist/program/strandfast.js')

/** The output and exit code of a command of the built program. */
export interface Ran {
  status: number | null
  stdout: string
  stderr: string
}

/** Runs the built program to its end. */
export async function run(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ran> {
  const child = spawn(process.execPath, [entry, ...args], {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (bytes: Buffer) => (stdout += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()))
  await once(child, 'close')
  return { status: child.exitCode, stdout, stderr }
}
