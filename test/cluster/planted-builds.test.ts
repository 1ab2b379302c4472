import { describe, expect, it } from 'vitest'
import {
  programText,
  plantedBugs,
  plantedBuild,
  plantedTransfers,
} from '../support/cluster/rounds/planted-build.js'

const MEMBER = /\.(#?[a-z]\w*)/gi

describe('a planted bug', () => {
  const program = programText()

  it.each([...plantedBugs, ...plantedTransfers])("fits into the built program: '$name'", (bug) => {
    plantedBuild(bug).remove()
    // A call of a missing method would end each process, and say nothing about the rounds.
    const planted = bug.changes.map(([, other]) => other).join('\n')
    const members = [...planted.matchAll(MEMBER)].map(([, name = '']) => name)
    const isDefined = (name: string) => program.includes(name) || planted.includes(`${name}(rest) {`)
    expect(members.filter((name) => !isDefined(name))).toEqual([])
  })
})
