import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync, Visitor } from 'rolldown/utils'

/** An imported file; `isType` if only types are imported. */
export interface Import {
  path: string
  isType: boolean
}

interface ModuleReference {
  source: { type: string; value?: unknown } | null
  importKind?: string
  exportKind?: string
}

/**
 * The modules that a file imports or re-exports, as values, types, dynamic imports or `import('…')` types.
 */
function specifiersOf(path: string): Import[] {
  const { program, errors } = parseSync(path, readFileSync(path, 'utf8'))
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`)
  const found: Import[] = []
  const add = ({ source, importKind, exportKind }: ModuleReference) => {
    const isType = importKind === 'type' || exportKind === 'type'
    if (typeof source?.value === 'string') found.push({ path: source.value, isType })
  }
  new Visitor({
    ImportDeclaration: add,
    ExportNamedDeclaration: add,
    ExportAllDeclaration: add,
    ImportExpression: add,
    TSImportType: ({ source }: ModuleReference) => add({ source, importKind: 'type' }),
  }).visit(program)
  return found
}

/** For each file, its imports among these files. */
export function importsAmong(paths: readonly string[]): Map<string, Import[]> {
  const known = new Set(paths)
  /** Sources name the compiled files. */
  const source = (name: string) =>
    [name, name.replace(/\.js$/, '.ts'), name.replace(/\.js$/, '.tsx')].find((one) => known.has(one))
  return new Map(
    paths.map((path) => {
      const named = specifiersOf(path).flatMap(({ path: specifier, isType }) => {
        const name = specifier.startsWith('.') ? source(join(dirname(path), specifier)) : undefined
        return name === undefined ? [] : [{ path: name, isType }]
      })
      return [path, named]
    }),
  )
}

/** The folder directly below `src` or `workers` that contains a file; `src` or `workers` for its direct files. */
function folderOf(path: string): string {
  return /\b(?:src|workers)(?:\/[^/]+)?(?=\/)/.exec(path)?.[0] ?? path
}

/** For each folder of these files, the other folders that it imports. */
export function importsOfFolders(imports: ReadonlyMap<string, readonly Import[]>): Map<string, Import[]> {
  const folders = new Map<string, Import[]>()
  for (const [path, all] of imports) {
    const folder = folderOf(path)
    const others = all
      .map((one) => ({ ...one, path: folderOf(one.path) }))
      .filter((one) => one.path !== folder)
    folders.set(folder, [...(folders.get(folder) ?? []), ...others])
  }
  return folders
}

/**
 * One cycle through each file or folder that imports itself indirectly, without cycles through those that were
 * visited before.
 */
export function cyclesOf(imports: ReadonlyMap<string, readonly Import[]>): string[] {
  const done = new Set<string>()
  const cycles: string[] = []
  const walk = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) cycles.push([...trail.slice(start), path].join(' → '))
    if (start >= 0 || done.has(path)) return
    for (const next of imports.get(path) ?? []) walk(next.path, [...trail, path])
    done.add(path)
  }
  for (const path of imports.keys()) walk(path, [])
  return [...new Set(cycles)]
}
