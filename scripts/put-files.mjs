import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * Makes a folder hold these files and no others. Only those that changed are written, since a server may be starting from
 * the present ones.
 * @param {string} folder
 * @param {ReadonlyMap<string, string>} files the text of each, by its path below the folder
 */
export function putFiles(folder, files) {
  for (const [name, text] of files) put(join(folder, name), text)
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !files.has(relative(folder, path).replaceAll('\\', '/'))) rmSync(path)
  }
}

function put(path, text) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}
