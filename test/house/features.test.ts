import { basename, dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { filesBelow } from './tree.js'

// A feature has one name: src/routes/NAME.ts, workers/commands/NAME.ts, test/routes/NAME.test.ts, and the same in the
// folder `auth` below each. Whatever departs from that is named here with its reason.

interface Exceptions {
  /** Files of src/front/routes that are no feature. */
  noFeature: Record<string, string>
  /** Features without commands: the front answers them, or their commands stand in another feature's file. */
  withoutCommands: Record<string, string>
  /** Files of workers/commands that no route of the same name calls. */
  withoutRoute: Record<string, string>
}

const folders: Record<string, Exceptions> = {
  '': {
    noFeature: {
      route: 'the shape of a route',
      'auth-route': 'the shape of an auth route',
      routes: 'the list of all routes',
      answers: 'answers that features share',
      parameters: 'readers of paths and queries that features share',
      'page-files': 'how console and docs serve their pages',
    },
    withoutCommands: {
      health: 'answered by the front',
      docs: 'answered by the front',
      console: 'answered by the front',
      'mail-pages': 'answered by the front',
      whoami: 'answered by the front',
      server: 'answered by the front',
      'strand-export': 'made by workers/reader.ts, behind the commands of proof',
    },
    withoutRoute: {
      audit: 'what the server tells of itself, at its start and by imports',
      drafts: 'reads request bodies into drafts, for records and ingest',
    },
  },
  '/auth': {
    noFeature: {
      'auth-routes': 'the list of all auth routes',
      answers: 'answers that auth features share',
    },
    withoutCommands: {
      status: 'answered by the front',
      jwks: 'answered by the front, from the epochs that keys keeps',
    },
    withoutRoute: {
      namespace: 'leads each change and look to the file of its feature',
    },
  },
}

/** Names of the files of a folder, not of those below it. */
const names = (folder: string, ending: string) =>
  filesBelow(folder)
    .filter((path) => dirname(path) === folder && path.endsWith(ending))
    .map((path) => basename(path, ending))

function found(folder: string, { noFeature }: Exceptions) {
  const routes = names(`src/front/routes${folder}`, '.ts')
  return {
    routes,
    features: routes.filter((name) => !(name in noFeature)),
    commands: names(`workers/commands${folder}`, '.ts'),
    // A slow file may be about several features: a restart, a full disk, other settings.
    tests: names(`test/routes${folder}`, '.test.ts').filter((name) => !/\.(slow|campaign)$/.test(name)),
  }
}

it('finds features, commands and tests', () => {
  for (const [folder, known] of [
    ['', 'records'],
    ['/auth', 'register'],
  ] as const) {
    const exceptions = folders[folder]
    if (exceptions === undefined) throw new Error(`No exceptions for ${folder}`)
    const { features, commands, tests } = found(folder, exceptions)
    for (const list of [features, commands, tests]) expect(list).toContain(known)
  }
})

describe.each(Object.entries(folders))('src/front/routes%s', (folder, exceptions) => {
  const { noFeature, withoutCommands, withoutRoute } = exceptions
  const { routes, features, commands, tests } = found(folder, exceptions)

  it('has commands of the same name for each feature, or a reason why not', () => {
    expect(features.filter((name) => !commands.includes(name) && !(name in withoutCommands))).toEqual([])
  })

  it('has a route of the same name for each file of commands, or a reason why not', () => {
    expect(commands.filter((name) => !features.includes(name) && !(name in withoutRoute))).toEqual([])
  })

  it('has a quick test of the same name for each feature, and no other', () => {
    expect(tests.toSorted()).toEqual(features.toSorted())
  })

  it('has no exception that is none', () => {
    expect(Object.keys(noFeature).filter((name) => !routes.includes(name))).toEqual([])
    const needless = (name: string) => !features.includes(name) || commands.includes(name)
    expect(Object.keys(withoutCommands).filter(needless)).toEqual([])
    const routed = (name: string) => !commands.includes(name) || features.includes(name)
    expect(Object.keys(withoutRoute).filter(routed)).toEqual([])
  })
})
