import type { Import } from './imports.js'

const lib = 'src/base src/strand src/proof src/auth src/wire src/protocol'
const browser = 'src/client src/proof src/strand src/auth types:src/wire'

/** A page of the console imports what pages share, and no other page. */
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
  'users',
  'verify',
]

/**
 * Which folders the files of a folder, its room, may import. `a` stands for the file `a`, or for all that is below the
 * folder `a`; `a/*` for the files in it alone; `types:a` for types alone. A room may always import itself. A file is in
 * the room of the longest name that its path begins with.
 */
export const rooms: Record<string, string> = {
  src: 'src',
  'src/base': '',
  'src/strand': 'src/base',
  // Checks run anywhere, also where there is no Node: of strand they take what needs none.
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
  'src/front/door': 'src/base types:src/settings',
  'src/front/limits': 'src/base types:src/front',
  'src/front/metrics': 'src/base src/wire src/protocol types:src/dispatch types:src/front',
  'src/front/routes': 'src/base src/strand src/auth src/wire src/protocol src/outbound types:src/settings',
  'src/front/http': `${lib} src/settings types:src/dispatch src/front`,
  'src/front/http/auth': `${lib} src/dispatch src/front/http/* src/front/limits src/front/routes`,
  'src/front/http/import': `${lib} types:src/dispatch src/front/http/* src/front/limits src/front/routes`,
  'src/front/http/ingest': `${lib} types:src/dispatch src/front/http/* src/front/limits src/front/routes`,
  'src/front/http/openapi': `${lib} src/front/http/* src/front/routes`,
  'src/front/http/streams': `${lib} src/settings types:src/dispatch src/front/http/* src/front/http/auth src/front/limits src/front/routes`,

  'src/cluster': '',
  // Decides, and knows no database, thread or clock.
  'src/cluster/members': 'src/base types:src/protocol',
  'src/cluster/database': 'src/base src/outbound/postgres-client src/outbound/postgres-trouble',
  'src/cluster/fitness': 'src/base src/cluster/database',
  'src/cluster/links':
    'src/base src/strand src/protocol src/dispatch src/cluster/members types:src/server types:src/front',
  'src/cluster/node':
    'src/base src/strand src/protocol src/data src/cluster types:src/settings types:src/dispatch types:src/server types:src/front',

  'src/server': `${lib} src/settings src/data src/outbound src/dispatch src/front src/cluster src/server`,
  'src/server/calls': `${lib} types:src/settings types:src/dispatch src/front types:src/server`,
  'src/server/fronts': `${lib} types:src/settings types:src/data src/dispatch src/front src/cluster src/server`,

  // A product of its own, for browsers as well.
  'src/client': 'types:src/wire types:src/strand src/proof/*',
  'src/console': `${browser} src/console`,
  'src/console/parts': `${browser} src/console/*`,
  'src/console/shell': `${browser} src/console/* src/console/parts`,
  ...Object.fromEntries(pages.map((name) => [`src/console/${name}`, page])),
  'src/cli': `${lib} src/main src/settings src/client src/data src/store-files src/cluster src/dispatch/pools src/front/door workers`,

  // The entries of threads. The front's carries out requests; those of sink and cluster log talk to PostgreSQL.
  workers: `${lib} src/cluster/database src/outbound src/server workers`,
  'workers/auth': `${lib} workers/shard workers/store`,
  'workers/commands': `${lib} workers/auth workers/import workers/mutations workers/shard workers/store`,
  'workers/import': `${lib} workers/mutations workers/shard workers/store`,
  'workers/mutations': `${lib} workers/shard workers/store`,
  'workers/reshard': `${lib} workers/store`,
  'workers/shard': `${lib} workers/auth workers/commands workers/mutations workers/store`,
  'workers/sink': `${lib} src/outbound workers/store`,
  'workers/store': `${lib} src/store-files`,
}

/** The room of a file. */
export function roomOf(path: string): string | undefined {
  return Object.keys(rooms)
    .filter((room) => path.startsWith(`${room}/`))
    .sort((one, other) => other.length - one.length)[0]
}

function isCovered(path: string, entry: string): boolean {
  if (entry.endsWith('/*'))
    return path.startsWith(entry.slice(0, -1)) && !path.slice(entry.length - 1).includes('/')
  return path.startsWith(`${entry}/`) || path.replace(/\.tsx?$/, '') === entry
}

/** Whether a file may import another by the table. */
export function mayImport(path: string, imported: Import): boolean {
  const room = roomOf(path)
  if (room === undefined || roomOf(imported.path) === room) return true
  return (rooms[room] ?? '').split(/\s+/).some((entry) => {
    const isTypes = entry.startsWith('types:')
    return (!isTypes || imported.isType) && isCovered(imported.path, isTypes ? entry.slice(6) : entry)
  })
}

/** `importing → imported` of each import that the table does not allow. */
export function trespasses(imports: ReadonlyMap<string, readonly Import[]>): string[] {
  return [...imports].flatMap(([path, all]) =>
    all.filter((imported) => !mayImport(path, imported)).map((imported) => `${path} → ${imported.path}`),
  )
}
