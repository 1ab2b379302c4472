import { expect, it } from 'vitest'
import { limits } from '../../../src/base/limits.js'
import type { FrontFrame } from '../../../src/protocol/frame.js'
import { noFigures } from '../../../src/protocol/shard-figures.js'
import { ShardMemory } from '../../../src/protocol/shard-memory.js'
import { FrontFrames } from '../../../workers/shard/front-frames.js'

const event = (agent: string) => ({ agent, seq: 1, hlc: '', data: '' })

it('gives each front the outcomes of its own commands, the events that it watches and every notice', () => {
  const memory = new ShardMemory()
  const watched = new Map([
    ['a', 0b01],
    ['b', 0b11],
  ])
  const frames = new FrontFrames(memory, watched)
  const sent: [number, FrontFrame][] = []
  for (const front of [0, 1, 2]) frames.add(front, (frame) => sent.push([front, frame]))
  frames.tell({
    outcomes: [
      [0, { kind: 'done' }],
      [limits.frontsMax + 1, { kind: 'done' }],
    ],
    events: [event('a'), event('b')],
    notices: [{ kind: 'erased', agents: ['a'] }],
    figures: { ...noFigures(), commits: 3 },
  })
  const notices = [{ kind: 'erased', agents: ['a'] }]
  expect(sent).toEqual([
    [0, { outcomes: [[0, { kind: 'done' }]], events: [event('a'), event('b')], notices, told: 1 }],
    [1, { outcomes: [[limits.frontsMax + 1, { kind: 'done' }]], events: [event('b')], notices, told: 1 }],
    [2, { outcomes: [], events: [], notices, told: 1 }],
  ])
  expect(memory.figures).toEqual({ ...noFigures(), commits: 3 })
  sent.length = 0
  watched.set('', 0b100)
  frames.tell({ outcomes: [], events: [event('c')], notices: [], figures: noFigures() })
  expect(sent).toEqual([[2, { outcomes: [], events: [event('c')], notices: [], told: 1 }]])
})
