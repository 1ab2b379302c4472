import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { describeProgress, type ProgressPart } from '../../../src/base/progress.js'
import { startProgress } from '../../../src/cli/progress.js'

const mebibyte = 1_048_576

function part(unit: ProgressPart['unit'], done: number, total?: number): ProgressPart {
  return { doing: 'copied', unit, state: () => ({ done, total }) }
}

describe('the text of progress', () => {
  it('contains the amount, the rate and the remaining time', () => {
    expect(describeProgress(part('records', 1_000, 5_000), 2_000)).toBe(
      'copied 1,000 of 5,000 records (20 %), 500/s, 8 seconds left',
    )
    expect(describeProgress(part('bytes', 64 * mebibyte, 4_096 * mebibyte), 1_000)).toBe(
      'copied 64 of 4,096 MiB (1 %), 64 MiB/s, 1 minute left',
    )
    expect(describeProgress(part('agents', 1, 36_001), 1_000)).toBe(
      'copied 1 of 36,001 agents (0 %), 1/s, 10 hours left',
    )
    expect(describeProgress(part('seconds', 3, 11), 3_000)).toBe('copied 3 of 11 s (27 %), 8 seconds left')
  })

  it('omits values that are not known', () => {
    expect(describeProgress(part('records', 10), 2_000)).toBe('copied 10 records, 5/s')
    expect(describeProgress(part('records', 10, 20), 100)).toBe('copied 10 of 20 records (50 %)')
    expect(describeProgress(part('records', 0, 20), 9_000)).toBe('copied 0 of 20 records (0 %)')
    expect(describeProgress(part('records', 0, 0), 9_000)).toBe('copied 0 records')
    // The count can exceed the total if a server writes during the work.
    expect(describeProgress(part('records', 30, 20), 1_000)).toBe(
      'copied 30 of 20 records (100 %), 30/s, 0 seconds left',
    )
  })
})

describe('progress on a terminal', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  function screen(isTTY: boolean) {
    const shown: string[] = []
    return { isTTY, columns: 40, shown, write: (text: string) => void shown.push(text) }
  }

  it('is one line, which is updated during the work and shows the final state at the end', () => {
    const terminal = screen(true)
    let nowMs = 0
    let done = 0
    const progress = startProgress(terminal, () => nowMs)
    progress.show({ doing: 'moved', unit: 'records', state: () => ({ done, total: 8 }) })
    const pass = (ms: number) => {
      for (let passed = 0; passed < ms; passed += 200) {
        nowMs += 200
        vi.advanceTimersByTime(200)
      }
    }
    pass(200)
    done = 4
    pass(800)
    done = 8
    progress.end()
    pass(1_000)
    expect(terminal.shown.map((text) => text.replace('\r\u001B[K', '> '))).toEqual([
      '> moved 0 of 8 records (0 %)',
      '> moved 4 of 8 records (50 %)',
      '> moved 4 of 8 records (50 %), 7/s, 1 sec',
      '> moved 4 of 8 records (50 %), 5/s, 1 sec',
      '> moved 4 of 8 records (50 %), 4/s, 1 sec',
      '> moved 8 of 8 records (100 %), 8/s, 0 se',
      '\n',
    ])
  })

  it('is updated by work that blocks the event loop, no more often than by a timer', () => {
    const terminal = screen(true)
    let nowMs = 0
    let done = 0
    const progress = startProgress(terminal, () => nowMs)
    progress.show({ doing: 'moved', unit: 'records', state: () => ({ done }) })
    for (; done < 1_000; done++) {
      nowMs++
      progress.tick()
    }
    expect(terminal.shown.length).toBe(5)
    progress.end()
  })

  it('writes nothing to a pipe, and no control character of a name to a terminal', () => {
    const pipe = screen(false)
    const inPipe = startProgress(pipe, () => 0)
    inPipe.show(part('records', 1, 2))
    inPipe.paint()
    vi.advanceTimersByTime(5_000)
    inPipe.tick()
    inPipe.end()
    expect(pipe.shown).toEqual([])
    const terminal = screen(true)
    const progress = startProgress(terminal, () => 0)
    progress.show({ doing: 'a\u001B[2J', unit: 'records', state: () => ({ done: 1 }) })
    progress.paint()
    progress.end()
    expect(terminal.shown).toEqual(['\r\u001B[Ka\\u001b[2J 1 records', '\n'])
  })
})
