import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import type { Plugin } from 'vite'

const root = process.cwd()
const program = join(root, 'dist/program')

/** The top-level names of a module, exported or not. */
function declaredNames(code: string): string[] {
  return parseAst(code).body.flatMap((statement) => {
    const declared =
      statement.type === 'ExportNamedDeclaration' ? (statement.declaration ?? statement) : statement
    if (declared.type === 'VariableDeclaration')
      return declared.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []))
    const isNamed = declared.type === 'FunctionDeclaration' || declared.type === 'ClassDeclaration'
    return isNamed && declared.id ? [declared.id.name] : []
  })
}

/**
 * Replaces the source functions that tests import by those of the shipped program (dist/program). A bundler
 * may drop a check of the sources (scripts/kept-calls.mjs). Functions that the program does not contain are
 * taken from the sources.
 */
export function builtProgram(): Plugin {
  const prefix = '\0built:'
  let modules: Record<string, { file: string; code: string } | undefined> = {}
  const cached = new Map<string, string[]>()
  const namesOf = (file: string) => {
    const names = cached.get(file) ?? declaredNames(readFileSync(file, 'utf8'))
    cached.set(file, names)
    return names
  }
  return {
    name: 'built program',
    enforce: 'pre',
    buildStart() {
      modules = JSON.parse(readFileSync('dist/program-modules.json', 'utf8')) as typeof modules
    },
    async resolveId(source, importer = '', options) {
      if (!importer.startsWith(join(root, 'test/'))) return null
      const found = await this.resolve(source, importer, { ...options, skipSelf: true })
      const path = found === null ? '' : relative(root, found.id)
      return /^(?:src(?!\/client\/)|workers)\/.*\.ts$/.test(path) ? prefix + path : null
    },
    load(id) {
      if (!id.startsWith(prefix)) return null
      const path = id.slice(prefix.length)
      const compiled = path.replace(/\.ts$/, '.js')
      const { file = '', code = '' } = modules[compiled] ?? {}
      // The file of a thread starts its work on import.
      const shipped = new Set(file.startsWith('src/parts/') ? namesOf(join(program, file)) : [])
      const locals = declaredNames(code).filter((name) => shipped.has(name))
      // If two modules declare the same name, the bundler appends a number to the second.
      const built = new Map(locals.map((local) => [local.replace(/\$\d+$/, ''), local]))
      return namesOf(join(root, 'dist', compiled))
        .map((name) =>
          built.has(name)
            ? `export { built_${built.get(name)} as ${name} } from '${join(program, file)}'`
            : `export * from '${join(root, path)}'`,
        )
        .join('\n')
    },
    transform(code, id) {
      if (!id.startsWith(program)) return null
      const names = namesOf(id).map((name) => `${name} as built_${name}`)
      return `${code}\nexport { ${names.join(', ')} }\n`
    },
  }
}
