import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { inherited } from '../../../scripts/crash-loop/inherited.mjs'

const entry = join(import.meta.dirname, '../../../dist/program/strandfast.js')

/** A command that runs in another process. */
export interface RunningCommand {
  process: ChildProcess
  /** Resolves when the command has ended. */
  ended: Promise<EndedCommand>
}

/** The result of a command. */
export interface EndedCommand {
  code: number | null
  stdout: string
  stderr: string
}

/** Starts a command of the program. @param env the settings, including SERVICE_DATA_DIR */
export function startCommand(args: string[], env: Record<string, string>): RunningCommand {
  const child = spawn(process.execPath, [entry, ...args], {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (bytes: Buffer) => (stdout += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()))
  const ended = once(child, 'close').then(() => ({ code: child.exitCode, stdout, stderr }))
  return { process: child, ended }
}

/** Makes a backup and waits for it. */
export function backUp(dataDir: string, target: string, ...more: string[]): Promise<EndedCommand> {
  return startCommand(['backup', target, ...more], { SERVICE_DATA_DIR: dataDir }).ended
}

/** Restores a backup and waits for it. */
export function restore(
  source: string,
  dataDir: string,
  env: Record<string, string> = {},
): Promise<EndedCommand> {
  return startCommand(['restore', source], { SERVICE_DATA_DIR: dataDir, ...env }).ended
}
