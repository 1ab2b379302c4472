import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync, Visitor } from 'rolldown/utils'

/** The modules that a file names: imports and exports of values and of types, dynamic imports and `import('…')` types. */
function specifiersOf(path: string): string[] {
  const { program, errors } = parseSync(path, readFileSync(path, 'utf8'))
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`)
  const found: string[] = []
  const take = ({ source }: { source: { type: string; value?: unknown } | null }) => {
    if (typeof source?.value === 'string') found.push(source.value)
  }
  new Visitor({
    ImportDeclaration: take,
    ExportNamedDeclaration: take,
    ExportAllDeclaration: take,
    ImportExpression: take,
    TSImportType: take,
  }).visit(program)
  return found
}

/** Of each file, those of the files that it imports, whether values or only types. */
export function importsAmong(paths: readonly string[]): Map<string, string[]> {
  const known = new Set(paths)
  return new Map(
    paths.map((path) => {
      const named = specifiersOf(path)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => join(dirname(path), specifier))
        // Sources name what they are compiled to.
        .flatMap((name) => [name, name.replace(/\.js$/, '.ts'), name.replace(/\.js$/, '.tsx')])
      return [path, [...new Set(named)].filter((name) => known.has(name))]
    }),
  )
}

/** One circle through each file that imports itself by way of others, without those that go through a file before. */
export function circlesOf(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>()
  const circles: string[] = []
  const walk = (path: string, way: readonly string[]): void => {
    const met = way.indexOf(path)
    if (met >= 0) circles.push([...way.slice(met), path].join(' → '))
    if (met >= 0 || done.has(path)) return
    for (const next of imports.get(path) ?? []) walk(next, [...way, path])
    done.add(path)
  }
  for (const path of imports.keys()) walk(path, [])
  return circles
}
