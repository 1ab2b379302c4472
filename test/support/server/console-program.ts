import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'

const root = join(import.meta.dirname, '../../..')

/** A copy of the built program with another console. */
export interface ConsoleProgram {
  /** The entry file, for `startServer`. */
  program: string
  /** The folder of its console. */
  folder: string
  remove(): void
}

/**
 * Copies the built program with these files as its console, compressed as in a build; without a console
 * folder if there are none.
 */
export function programWith(files: Readonly<Record<string, string>>): ConsoleProgram {
  const copy = mkdtempSync(join(tmpdir(), 'strandfast-console-'))
  const folder = join(copy, 'dist/program/console')
  cpSync(join(root, 'package.json'), join(copy, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  cpSync(join(root, 'dist/program'), join(copy, 'dist/program'), {
    recursive: true,
    filter: (path) => path !== join(root, 'dist/program/console'),
  })
  writeConsole(folder, files)
  return {
    program: join(copy, 'dist/program/strandfast.js'),
    folder,
    remove: () => rmSync(copy, { recursive: true, force: true }),
  }
}

/** Writes console files to a folder, each with both compressions. */
export function writeConsole(folder: string, files: Readonly<Record<string, string>>): void {
  if (Object.keys(files).length > 0) mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(text))
    writeFileSync(join(folder, `${name}.gz`), gzipSync(text))
  }
}
