import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync, Visitor } from 'rolldown/utils'

/** A file that another imports; `isType` where it takes types alone. */
export interface Import {
  path: string
  isType: boolean
}

interface Naming {
  source: { type: string; value?: unknown } | null
  importKind?: string
  exportKind?: string
}

/** The modules that a file names: imports and exports of values and of types, dynamic imports and `import('…')` types. */
function specifiersOf(path: string): Import[] {
  const { program, errors } = parseSync(path, readFileSync(path, 'utf8'))
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`)
  const found: Import[] = []
  const take = ({ source, importKind, exportKind }: Naming) => {
    const isType = importKind === 'type' || exportKind === 'type'
    if (typeof source?.value === 'string') found.push({ path: source.value, isType })
  }
  new Visitor({
    ImportDeclaration: take,
    ExportNamedDeclaration: take,
    ExportAllDeclaration: take,
    ImportExpression: take,
    TSImportType: ({ source }: Naming) => take({ source, importKind: 'type' }),
  }).visit(program)
  return found
}

/** Of each file, those of the files that it imports, whether values or only types. */
export function importsAmong(paths: readonly string[]): Map<string, Import[]> {
  const known = new Set(paths)
  /** Sources name what they are compiled to. */
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

/** One circle through each file that imports itself by way of others, without those that go through a file before. */
export function circlesOf(imports: ReadonlyMap<string, readonly Import[]>): string[] {
  const done = new Set<string>()
  const circles: string[] = []
  const walk = (path: string, way: readonly string[]): void => {
    const met = way.indexOf(path)
    if (met >= 0) circles.push([...way.slice(met), path].join(' → '))
    if (met >= 0 || done.has(path)) return
    for (const next of imports.get(path) ?? []) walk(next.path, [...way, path])
    done.add(path)
  }
  for (const path of imports.keys()) walk(path, [])
  return circles
}
