import { describe, expect, it } from 'vitest'
import { passwordAnswers, type PasswordTasks } from '../../../src/protocol/password-tasks.js'
import { answerOf, type PoolTasks } from '../../../src/protocol/pool-tasks.js'
import { readerAnswers, type ReaderTasks } from '../../../src/protocol/reader-tasks.js'
import { storeAnswers, type StoreTasks } from '../../../src/protocol/store-tasks.js'

/** The module of a thread; its functions are the tasks. */
type TaskModule<Tasks extends PoolTasks<Tasks>> = {
  [Name in keyof Tasks]: (task: Tasks[Name]['task']) => Tasks[Name]['found'] | Promise<Tasks[Name]['found']>
}

// The compiler refuses a module that lacks a task, or has one with a wrong type.
type NamesIn<Module extends TaskModule<Tasks>, Tasks extends PoolTasks<Tasks>> = keyof Tasks & keyof Module
const tasksOfThreads: [
  NamesIn<typeof import('../../../workers/password.js'), PasswordTasks>,
  NamesIn<typeof import('../../../workers/reader.js'), ReaderTasks>,
  NamesIn<typeof import('../../../workers/stores.js'), StoreTasks>,
] = ['hashPassword', 'importCheck', 'checkOne']

const place = { seq: 3, head: 'ab', hlc: '1', key: 'cd', sealAwaited: undefined }
const position = { rotations: 0, place, records: 3, subtrees: [{ level: 0, rootHex: 'ef' }] }
const staged = { position, linesTaken: 3, bytesTaken: 90, ended: false, staged: true }

describe('the answers of threads', () => {
  it('are registered for all tasks', () => {
    const known = [passwordAnswers, readerAnswers, storeAnswers].flatMap((answers) => Object.keys(answers))
    expect(known).toEqual(expect.arrayContaining(tasksOfThreads))
  })

  it.each([
    ['a hash', passwordAnswers.hashPassword, ['$argon2id$', undefined]],
    ['a comparison', passwordAnswers.verifyPassword, [{ matches: true, rehashed: 'x' }, { matches: 'yes' }]],
    [
      'a page',
      readerAnswers.exportPage,
      [
        { bytes: new Uint8Array(1), nextSeq: 1, lastHash: 'ab' },
        { bytes: 'ab', nextSeq: 1, lastHash: 'ab' },
      ],
    ],
    [
      'a path',
      readerAnswers.inclusion,
      [
        { root: 'ab', path: ['cd'] },
        { root: 'ab', path: [1] },
      ],
    ],
    [
      'a consistency proof',
      readerAnswers.consistency,
      [{ path: [], fromRoot: 'a', toRoot: 'b' }, { path: [] }],
    ],
    [
      'a staged import',
      readerAnswers.importCheck,
      [staged, { ...staged, position: { ...position, place: {} } }],
    ],
    [
      'a refused import',
      readerAnswers.importCheck,
      [{ fault: { line: 1, seq: 2, reason: 'x', forbidden: false } }, { fault: 'x' }],
    ],
    ['a full disk', readerAnswers.importCheck, [{ full: true }, { full: false }]],
    ['copies', storeAnswers.copyStores, [[{ agents: 1, records: 2 }], [{ agents: 1 }]]],
    [
      'a check',
      storeAnswers.checkOne,
      [
        { agents: 1, records: 2, lastHlc: '', faults: [] },
        { agents: 1, records: 2, lastHlc: '', faults: [1] },
      ],
    ],
  ])('are checked: %s', (_, check, [valid, wrong]) => {
    expect(answerOf<unknown>(check, valid)).toBe(valid)
    expect(() => answerOf<unknown>(check, wrong)).toThrow('the result of a task has the shape')
  })
})
