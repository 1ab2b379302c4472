import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createLogger } from '../../../src/base/log.js'
import { ServerState } from '../../../src/server/state.js'

it('only reads where the disk does not tell its free space, and says so once', () => {
  const dataDir = join(tmpdir(), 'strandfast-none', 'data')
  const { state, lines } = watched(dataDir, 1)
  expect(state.readOnly).toBe(true)
  expect(state.standing.writeRefusal()?.code).toBe('storage_full')
  expect(lines).toEqual([expect.stringContaining('free space cannot be told')])
  expect(lines[0]).toContain('ENOENT')
})

it('writes where there is room, and where no mark is set', () => {
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
