import { basename, dirname } from 'node:path'
import { expect, it } from 'vitest'
import { filesBelow } from './tree.js'

// A feature has one name: src/routes/NAME.ts, workers/commands/NAME.ts, test/routes/NAME.test.ts. These are the
// exceptions, each with its reason.

/** Files of src/routes that are no feature. */
const noFeature: Record<string, string> = {
  route: 'the shape of a route',
  routes: 'the list of all routes',
  answers: 'answers that features share',
  parameters: 'readers of paths and queries that features share',
  'docs-page': 'the page that docs answers with',
}

/** Features without commands: the front answers them, or their commands stand in another feature's file. */
const withoutCommands: Record<string, string> = {
  health: 'answered by the front',
  docs: 'answered by the front',
  'strand-export': 'made by workers/reader.ts, behind the commands of proof',
}

/** Files of workers/commands that no route of the same name calls. */
const withoutRoute: Record<string, string> = {
  drafts: 'reads request bodies into drafts, for records and ingest',
}

/** Names of the files of a folder, not of those below it. */
const names = (folder: string, ending: string) =>
  filesBelow(folder)
    .filter((path) => dirname(path) === folder && path.endsWith(ending))
    .map((path) => basename(path, ending))

const routes = names('src/routes', '.ts')
const features = routes.filter((name) => !(name in noFeature))
const commands = names('workers/commands', '.ts')
const tests = names('test/routes', '.test.ts')

it('finds features, commands and tests', () => {
  for (const found of [features, commands, tests]) expect(found).toContain('records')
})

it('has commands of the same name for each feature, or a reason why not', () => {
  expect(features.filter((name) => !commands.includes(name) && !(name in withoutCommands))).toEqual([])
})

it('has a route of the same name for each file of commands, or a reason why not', () => {
  expect(commands.filter((name) => !features.includes(name) && !(name in withoutRoute))).toEqual([])
})

it('has a test of the same name for each feature, and no other', () => {
  expect(tests.toSorted()).toEqual(features.toSorted())
})

it('has no exception that is none', () => {
  expect(Object.keys(noFeature).filter((name) => !routes.includes(name))).toEqual([])
  const needless = (name: string) => !features.includes(name) || commands.includes(name)
  expect(Object.keys(withoutCommands).filter(needless)).toEqual([])
  expect(
    Object.keys(withoutRoute).filter((name) => !commands.includes(name) || features.includes(name)),
  ).toEqual([])
})
