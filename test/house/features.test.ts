import { basename, dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { filesBelow, linesMatching } from './tree.js'

// A feature has the same name in src/front/routes/NAME.ts, workers/commands/NAME.ts and
// test/routes/NAME.test.ts, and in the folder `auth` of each. Exceptions are listed here with their reasons.

interface Exceptions {
  /** Files of src/front/routes that are not features. */
  noFeature: Record<string, string>
  /** Features without commands: the front answers them, or another file has their commands. */
  withoutCommands: Record<string, string>
  /** Files of workers/commands without a route of the same name. */
  withoutRoute: Record<string, string>
}

const folders: Record<string, Exceptions> = {
  '': {
    noFeature: {
      route: 'the shape of a route',
      'auth-route': 'the shape of an auth route',
      routes: 'the list of all routes',
      answers: 'answers of several features',
      'refusal-form': 'how clients of a route expect refusals',
      parameters: 'readers of paths and queries of several features',
      'page-files': 'the pages of console and docs',
    },
    withoutCommands: {
      health: 'answered by the front',
      docs: 'answered by the front',
      console: 'answered by the front',
      'mail-pages': 'answered by the front',
      whoami: 'answered by the front',
      server: 'answered by the front',
      otlp: 'decoded by src/otlp, with the commands of ingest',
      'strand-export': 'executed by workers/reader.ts, with the commands of proof',
    },
    withoutRoute: {
      audit: "records of the server's own operations",
      'batch-split': 'splits batches into records, for records',
      decisions: 'the table of all commands',
      drafts: 'reads request bodies into drafts for records and ingest',
    },
  },
  '/auth': {
    noFeature: {
      'auth-routes': 'the list of all auth routes',
      answers: 'answers of several auth features',
    },
    withoutCommands: {
      status: 'answered by the front',
      jwks: 'answered by the front, from the key epochs',
    },
    withoutRoute: {
      namespace: 'dispatches each change and lookup to the file of its feature',
    },
  },
}

/** Names of the files directly in a folder. */
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
    // A slow test may cover several features: a restart, a full disk, other settings.
    tests: names(`test/routes${folder}`, '.test.ts').filter((name) => !/\.(slow|campaign)$/.test(name)),
  }
}

// OTLP is a source of lines (src/front/http/ingest/source.ts): what is its own is in src/otlp, and its route.
it('names OTLP in no file that handles every request or every ingest', () => {
  const generic = [...filesBelow('src/front/http'), ...filesBelow('src/front/limits')]
  expect(linesMatching(generic, /otlp/i)).toEqual([])
  expect(linesMatching(filesBelow('src/front/routes'), /otlp/i).length).toBeGreaterThan(10)
})

it('declares the messages of each feature in its own file', () => {
  const kinds = linesMatching(['src/protocol/messages.ts'], /\bkind: '/).map((line) => line.split("'")[1])
  expect(kinds).toEqual(['reply', 'done'])
})

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

  it('has commands of the same name for each feature, or an exception', () => {
    expect(features.filter((name) => !commands.includes(name) && !(name in withoutCommands))).toEqual([])
  })

  it('has a route of the same name for each file of commands, or an exception', () => {
    expect(commands.filter((name) => !features.includes(name) && !(name in withoutRoute))).toEqual([])
  })

  it('has a quick test of the same name for each feature and no other', () => {
    expect(tests.toSorted()).toEqual(features.toSorted())
  })

  it('has no unneeded exception', () => {
    expect(Object.keys(noFeature).filter((name) => !routes.includes(name))).toEqual([])
    const needless = (name: string) => !features.includes(name) || commands.includes(name)
    expect(Object.keys(withoutCommands).filter(needless)).toEqual([])
    const routed = (name: string) => !commands.includes(name) || features.includes(name)
    expect(Object.keys(withoutRoute).filter(routed)).toEqual([])
  })
})
