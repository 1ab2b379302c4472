import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * Makes a folder contain exactly these files. Only changed files are written, because a server may be
 * starting from them.
 * @param {string} folder
 * @param {ReadonlyMap<string, string | Uint8Array>} files the text or bytes of each file, by its path in the
 * folder
 */
export function putFiles(folder, files) {
  for (const [name, content] of files) put(join(folder, name), content)
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !files.has(relative(folder, path).replaceAll('\\', '/'))) rmSync(path)
  }
}

function put(path, content) {
  if (existsSync(path) && readFileSync(path).equals(Buffer.from(content))) return
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.new`, content)
  renameSync(`${path}.new`, path)
}
