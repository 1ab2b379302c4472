import { expect, it } from 'vitest'
import { storeTables, tableIds } from '../../../src/store-files/store-tables.js'
import { rowMovers } from '../../../workers/reshard/row-movers.js'

it('a reshard moves each logged table, or derives it', () => {
  const derived = new Set<string>(['blocks', 'importedBlocks', 'strands', 'toldHeads', 'expiries'])
  const logged = storeTables.filter((name) => typeof tableIds[name] === 'number')
  expect([...rowMovers.keys()].sort()).toEqual(logged.filter((name) => !derived.has(name)).sort())
})

it('each logged table has its own number', () => {
  const numbers = Object.values(tableIds).filter((id) => typeof id === 'number')
  expect(new Set(numbers).size).toBe(numbers.length)
})
