import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'

const outside = new Set(['.git', 'node_modules', 'dist', 'coverage'])
const textEndings = /\.(ts|tsx|mts|js|mjs|cjs|json|jsonl|md|html|css|txt|yaml|yml|sh|toml|py|cfg|service)$/
const textNames = new Set([
  'Dockerfile',
  'LICENSE',
  'run',
  '.nvmrc',
  '.npmrc',
  '.gitignore',
  '.dockerignore',
  '.editorconfig',
])

/** Paths of the files in `folder` and its subfolders, including `folder`; empty if it does not exist. */
export function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    // A server that was started here stores its data in `data`.
    if (entry.isDirectory()) return outside.has(entry.name) || path === 'data' ? [] : filesBelow(path)
    return entry.isFile() ? [path] : []
  })
}

/** Paths of all text files in `root`, by default the repository. */
export function textFiles(root = '.'): string[] {
  return filesBelow(root).filter((path) => textEndings.test(path) || textNames.has(basename(path)))
}

/** Paths of the TypeScript and JavaScript files in the folders. */
export function codeBelow(...folders: string[]): string[] {
  return folders.flatMap(filesBelow).filter((path) => /\.(m?ts|tsx|m?js)$/.test(path))
}

/** Paths of the style sheets in the folders. */
export function stylesBelow(...folders: string[]): string[] {
  return folders.flatMap(filesBelow).filter((path) => path.endsWith('.css'))
}

/** `path:line: text` of each matching line of the files. */
export function linesMatching(paths: string[], pattern: RegExp): string[] {
  return paths.flatMap((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  )
}
