import { basename } from 'node:path'
import { expect, it } from 'vitest'
import { filesBelow } from './tree.js'

// A feature has one name: src/routes/NAME.ts, workers/commands/NAME.ts, test/routes/NAME.test.ts. These are the
// exceptions, each with its reason.

/** Files of src/routes that are no feature. */
const noFeature: Record<string, string> = {
  route: 'the shape of a route',
  table: 'the list of all routes',
  answers: 'answers that features share',
  parameters: 'readers of paths and queries that features share',
}

/** Features without commands: the front answers them, or their commands stand in another feature's file. */
const withoutCommands: Record<string, string> = {
  health: 'answered by the front',
  documents: 'answered by the front',
}

/** Files of workers/commands that no route of the same name calls. */
const withoutRoute: Record<string, string> = {
  drafts: 'reads request bodies into drafts, for records and ingest',
}

/** Features that are tested elsewhere. */
const testedElsewhere: Record<string, string> = {}

const names = (folder: string, ending: string) =>
  filesBelow(folder)
    .filter((path) => path.endsWith(ending))
    .map((path) => basename(path, ending))

const features = names('src/routes', '.ts').filter((name) => !(name in noFeature))
const commands = names('workers/commands', '.ts')
const tests = names('test/routes', '.test.ts')

it('has commands of the same name for each feature, or a reason why not', () => {
  expect(features.filter((name) => !commands.includes(name) && !(name in withoutCommands))).toEqual([])
})

it('has a route of the same name for each file of commands, or a reason why not', () => {
  expect(commands.filter((name) => !features.includes(name) && !(name in withoutRoute))).toEqual([])
})

it('has a test of the same name for each feature, or a reason why not', () => {
  expect(features.filter((name) => !tests.includes(name) && !(name in testedElsewhere))).toEqual([])
})
