import type { Import } from './imports.js'

const lib = 'src/base src/strand src/proof src/auth src/wire src/protocol'
const browser = 'src/base/duration src/client src/proof src/strand src/auth types:src/wire'

/** A page of the console imports shared code, and no other page. */
const page = `${browser} src/console/* src/console/parts src/console/shell`
const pages = [
  'agents',
  'api',
  'audit',
  'health',
  'home',
  'keys',
  'live',
  'log',
  'proposals',
  'start',
  'trace',
  'users',
  'verify',
]

/**
 * The layers: the imports that the files of each folder may have. `a` stands for the file `a`, or for
 * everything in the folder `a`; `a/*` for its direct files; `types:a` for types only. A layer may always
 * import itself. A file belongs to the layer with the longest matching path.
 */
export const layers: Record<string, string> = {
  src: 'src',
  'src/base': '',
  'src/strand': 'src/base',
  // Checks run anywhere, also without Node: they use the parts of strand that do not need it.
  'src/proof': 'types:src/strand src/strand/header src/strand/record-type src/strand/strand-export',
  'src/proof/node': 'src/base src/strand src/proof',
  'src/auth': 'src/base src/strand',
  'src/wire': 'src/base src/strand',
  'src/protocol': 'src/base src/strand types:src/proof types:src/auth',
  'src/store-files': 'src/base',
  'src/settings': 'src/base src/strand src/auth',
  'src/data': 'src/base src/strand src/auth src/wire src/settings src/store-files',
  'src/data/backup': 'src/base src/wire src/protocol src/data src/dispatch/pools',
  'src/outbound': 'src/base src/strand src/auth types:src/settings',

  'src/dispatch': 'src/base src/strand src/protocol src/dispatch/links',
  'src/dispatch/links': 'src/base src/strand src/protocol',
  'src/dispatch/pools': 'src/base src/protocol',
  'src/dispatch/threads': 'src/base src/protocol src/dispatch',
  'src/dispatch/duties': 'src/base src/strand src/protocol src/dispatch/* src/dispatch/links',

  'src/front': '',
  'src/front/engine': 'src/base types:src/settings',
  'src/front/limits': 'src/base types:src/front',
  'src/front/metrics': 'src/base src/wire src/protocol types:src/dispatch types:src/front',
  'src/front/routes': 'src/base src/strand src/auth src/wire src/protocol src/outbound types:src/settings',
  'src/front/http': `${lib} src/settings types:src/dispatch src/front`,
  'src/front/http/auth': `${lib} src/dispatch src/front/http/* src/front/limits src/front/routes`,
  'src/front/http/import': `${lib} types:src/dispatch src/front/http/* src/front/limits src/front/routes`,
  'src/front/http/ingest': `${lib} types:src/dispatch src/front/http/* src/front/limits src/front/routes`,
  'src/front/http/openapi': `${lib} src/front/http/* src/front/routes`,
  'src/front/http/streams': `${lib} src/settings types:src/dispatch src/front/http/* src/front/http/auth src/front/limits src/front/routes`,

  // A source of lines with threads that decode them, which run lines, messages and strictness.
  'src/otlp': `${lib} src/dispatch/pools src/front/http src/front/routes`,

  // What a node needs of its server.
  'src/cluster': 'types:src/base types:src/dispatch types:src/front types:src/protocol types:src/wire',
  // Pure decisions, without database, threads or clock.
  'src/cluster/members': 'src/base types:src/protocol',
  'src/cluster/database':
    'src/base src/outbound/postgres-client src/outbound/postgres-errors types:src/cluster/members',
  'src/cluster/fitness': 'src/base src/cluster/database types:src/cluster/members',
  'src/cluster/links':
    'src/base src/strand src/protocol src/dispatch src/cluster/members types:src/cluster/host types:src/front',
  'src/cluster/node':
    'src/base src/strand src/protocol src/data src/cluster types:src/settings types:src/dispatch',

  'src/server': `${lib} src/settings src/data src/outbound src/dispatch src/front src/cluster src/otlp src/server`,
  'src/server/calls': `${lib} types:src/settings types:src/cluster/host types:src/dispatch src/front src/otlp/tasks types:src/server`,
  'src/server/fronts': `${lib} types:src/settings types:src/data src/dispatch src/front src/cluster src/otlp/tasks src/server`,

  // A separate product, also for browsers.
  'src/client': 'src/base/backoff types:src/wire types:src/strand src/proof/*',
  'src/console': `${browser} src/console`,
  'src/console/parts': `${browser} src/console/*`,
  'src/console/shell': `${browser} src/console/* src/console/parts`,
  ...Object.fromEntries(pages.map((name) => [`src/console/${name}`, page])),
  'src/cli': `${lib} src/main src/settings src/client src/data src/store-files src/cluster src/dispatch/pools src/front/engine workers`,

  // The entries of threads. That of the front executes requests; those of sink and cluster log use
  // PostgreSQL.
  workers: `${lib} src/cluster/database src/outbound src/otlp src/server workers`,
  'workers/auth': `${lib} workers/shard workers/store`,
  'workers/commands': `${lib} workers/auth workers/import workers/mutations workers/shard workers/store`,
  'workers/import': `${lib} workers/mutations workers/shard workers/store`,
  'workers/mutations': `${lib} workers/shard workers/store`,
  'workers/reshard': `${lib} workers/store`,
  'workers/shard': `${lib} workers/store`,
  'workers/sink': `${lib} src/outbound workers/store`,
  'workers/store': `${lib} src/store-files`,
}

/** The layer of a file. */
export function layerOf(path: string): string | undefined {
  return Object.keys(layers)
    .filter((layer) => path.startsWith(`${layer}/`))
    .sort((one, other) => other.length - one.length)[0]
}

function isCovered(path: string, entry: string): boolean {
  if (entry.endsWith('/*'))
    return path.startsWith(entry.slice(0, -1)) && !path.slice(entry.length - 1).includes('/')
  return path.startsWith(`${entry}/`) || path.replace(/\.tsx?$/, '') === entry
}

/** Whether a file may import another one. */
export function mayImport(path: string, imported: Import): boolean {
  const layer = layerOf(path)
  if (layer === undefined || layerOf(imported.path) === layer) return true
  return (layers[layer] ?? '').split(/\s+/).some((entry) => {
    const isTypesOnly = entry.startsWith('types:')
    return (!isTypesOnly || imported.isType) && isCovered(imported.path, isTypesOnly ? entry.slice(6) : entry)
  })
}

/** `importing → imported` of each forbidden import. */
export function violations(imports: ReadonlyMap<string, readonly Import[]>): string[] {
  return [...imports].flatMap(([path, all]) =>
    all.filter((imported) => !mayImport(path, imported)).map((imported) => `${path} → ${imported.path}`),
  )
}
