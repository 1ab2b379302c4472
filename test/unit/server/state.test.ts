import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import { createLogger } from '../../../src/base/log.js'
import { ServerState } from '../../../src/server/state.js'

it('is read-only if the disk does not report its free space, and logs the reason once', () => {
  const dataDir = join(tmpdir(), 'strandfast-none', 'data')
  const { state, lines } = watched(dataDir, 1)
  expect(state.readOnly).toBe(true)
  expect(lines).toEqual([expect.stringContaining('free disk space cannot be determined')])
  expect(lines[0]).toContain('ENOENT')
})

it('accepts writes if there is space, or if no limit is set', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'strandfast-state-'))
  expect(watched(dataDir, 1).state.readOnly).toBe(false)
  expect(watched(dataDir, Number.MAX_SAFE_INTEGER).state.readOnly).toBe(true)
  rmSync(dataDir, { recursive: true })
  expect(watched(dataDir, 0).state.readOnly).toBe(false)
})

function watched(dataDir: string, freeBytesMin: number): { state: ServerState; lines: string[] } {
  const lines: string[] = []
  const log = createLogger('warn', 'front', { write: (line: string) => void lines.push(line) })
  const state = new ServerState({ dataDir, freeBytesMin }, log)
  state.start()
  state.stop()
  return { state, lines }
}

it('repeats a write of the start after each check of the disk, until it succeeds', async () => {
  vi.useFakeTimers()
  const lines: string[] = []
  const log = createLogger('warn', 'front', { write: (line: string) => void lines.push(line) })
  const state = new ServerState({ dataDir: tmpdir(), freeBytesMin: 0 }, log)
  state.start()
  const answers = [false, false, true]
  const write = vi.fn(async () => answers.shift() ?? true)
  await state.writeAtStart(write)
  expect(write).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(10 * limits.diskWatchMs)
  expect(write).toHaveBeenCalledTimes(3)
  state.stop()
  vi.useRealTimers()
  expect(lines).toEqual([])
})
