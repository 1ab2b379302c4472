import { expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import { ShardLink } from '../../../src/dispatch/links/shard-link.js'
import { encodeOutcomes, type FrontFrame } from '../../../src/protocol/frame.js'
import type { Notice } from '../../../src/protocol/notices.js'
import { noFigures } from '../../../src/protocol/shard-figures.js'
import { ShardMemory } from '../../../src/protocol/shard-memory.js'
import { FrontFrames, Watched } from '../../../workers/shard/front-frames.js'

const event = (agent: string) => ({ agent, seq: 1, hlc: '', data: '' })

it('sends each front the outcomes of its commands, the events that it watches and every notice', () => {
  const memory = new ShardMemory()
  const watched = new Watched()
  for (const [front, agent] of [
    [0, 'a'],
    [0, 'b'],
    [1, 'b'],
  ] as const)
    watched.watch(front, agent, true)
  const frames = new FrontFrames(memory, watched)
  const sent: [number, FrontFrame][] = []
  for (const front of [0, 1, 2]) frames.add(front, (frame) => sent.push([front, frame]))
  frames.send({
    outcomes: [
      [0, { kind: 'done' }],
      [limits.frontNumbers + 1, { kind: 'done' }],
    ],
    events: [event('a'), event('b')],
    notices: [{ kind: 'erased', agents: ['a'] }],
    figures: { ...noFigures(), commits: 3 },
    appended: true,
  })
  const common = { notices: [{ kind: 'erased', agents: ['a'] }], appended: true, noticeNo: 1 }
  expect(sent).toEqual([
    [0, { outcomes: [[0, { kind: 'done' }]], events: [event('a'), event('b')], ...common }],
    [1, { outcomes: [[limits.frontNumbers + 1, { kind: 'done' }]], events: [event('b')], ...common }],
    [2, { outcomes: [], events: [], ...common }],
  ])
  expect(memory.figures).toEqual({ ...noFigures(), commits: 3 })
  sent.length = 0
  watched.watch(2, '', true)
  frames.send({ outcomes: [], events: [event('c')], notices: [], figures: noFigures(), appended: false })
  expect(sent).toEqual([
    [2, { outcomes: [], events: [event('c')], notices: [], appended: false, noticeNo: 1 }],
  ])
})

it('does not wait for a front to process notices that were sent before it joined', async () => {
  const memory = new ShardMemory()
  const frames = new FrontFrames(memory, new Watched())
  const nothing = () => undefined
  const failed = (error: unknown) => expect.fail(String(error))
  const fronts = [0, 1].map((front) => ({
    link: new ShardLink(
      {
        events: nothing,
        notice: nothing,
        catchUp: async () => {},
        restarted: nothing,
        ended: nothing,
      },
      false,
    ),
    thread: { front, term: 0, memory, lease: undefined, post: nothing },
  }))
  for (const { thread } of fronts) memory.startCatchUp(thread.front)
  const serve = (front: number) => fronts[front]?.link.join(fronts[front].thread, failed)
  // Messages are delayed: a front without queries serves before its first message arrives.
  const inFlight: (() => void)[] = []
  const sendTo = (front: number) => (frame: FrontFrame) =>
    void inFlight.push(() => fronts[front]?.link.receive(fronts[front].thread, encodeOutcomes(frame)))
  frames.add(0, sendTo(0))
  const notices: Notice[] = [{ kind: 'storeBuilt' }]
  frames.send({ outcomes: [], events: [], notices, figures: noFigures(), appended: false })
  await serve(0)
  frames.add(1, sendTo(1))
  await serve(1)
  const answered = new Promise((resolve) => fronts[0]?.link.send({ kind: 'agentHead', agent: 'a' }, resolve))
  frames.send({
    outcomes: [[0, { kind: 'done' }]],
    events: [],
    notices: [],
    figures: noFigures(),
    appended: false,
  })
  for (const arrive of inFlight) arrive()
  expect(memory.isAcknowledged(1)).toBe(true)
  expect(await answered).toEqual({ kind: 'done' })
})

it('sends each large answer to a front of another node in a separate frame, after the frame of the turn', () => {
  const frames = new FrontFrames(new ShardMemory(), new Watched())
  const remote = limits.frontsMax
  const sent: [number, FrontFrame, unknown][] = []
  for (const front of [0, remote]) frames.add(front, (frame, late) => sent.push([front, frame, late]))
  const notices: Notice[] = [{ kind: 'erased', agents: ['a'] }]
  const row = { kind: 'rows' as const, rows: Buffer.alloc(0), count: 0 }
  const [own, large, short] = [0, remote, limits.frontNumbers + remote]
  frames.send({
    outcomes: [
      [own, row],
      [large, row],
      [short, row],
    ],
    events: [],
    notices,
    figures: noFigures(),
    appended: false,
    large: new Map([
      [own, 'x'],
      [large, 'y'],
    ]),
  })
  const common = { events: [], notices, appended: false, noticeNo: 1 }
  expect(sent).toEqual([
    [0, { outcomes: [[own, row]], ...common }, undefined],
    [remote, { outcomes: [[short, row]], ...common }, undefined],
    [remote, { ...common, outcomes: [[large, row]], notices: [], isLate: true }, { id: large, caller: 'y' }],
  ])
})
