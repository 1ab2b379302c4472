import { describe, expect, it } from 'vitest'
import {
  differences,
  leaseMsOf,
  readTold,
  tellOwn,
  tellSettings,
} from '../../../../src/cluster/members/settings-digest.js'

const member = (node: string, settingsDigest: string) => ({ node, settingsDigest })

describe('what nodes of a cluster tell of themselves', () => {
  it('is read as it was told', () => {
    const serving = { version: '1', servesSinceMs: 5 }
    expect(readTold({ owns: tellOwn(serving) })).toEqual(serving)
    expect(readTold({ owns: tellOwn({ version: '1', lagSecs: 0.5 }) })).toEqual({
      version: '1',
      lagSecs: 0.5,
    })
    expect(leaseMsOf({ settingsDigest: tellSettings(10, { SERVICE_SIGNING: 'record' }) })).toBe(10_000)
  })

  it('is nothing where a row has something else, as one that somebody wrote into the database', () => {
    for (const owns of ['', '{}', 'null', '[1]', '{"version":1}', '{"version":"1","lagSecs":"x"}'])
      expect(readTold({ owns })).toEqual({ version: '' })
    for (const settingsDigest of ['', 'null', '7', 'lease 10', '{"SERVICE_CLUSTER_LEASE_SECS":"x"}'])
      expect(leaseMsOf({ settingsDigest })).toBe(0)
  })

  it('differs setting by setting, in the order of their names, with each node', () => {
    const [one, other] = [tellSettings(10, { B: 'x', A: '1' }), tellSettings(5, { B: 'x', A: '2' })]
    expect(differences([member('b', other), member('a', one)])).toEqual([
      'Nodes differ in A: a 1, b 2',
      'Nodes differ in SERVICE_CLUSTER_LEASE_SECS: a 10, b 5',
    ])
    expect(differences([member('a', one), member('b', one)])).toEqual([])
    // A setting that an earlier version does not tell of differs, too.
    expect(differences([member('a', one), member('b', tellSettings(10, { B: 'x' }))])).toEqual([
      'Nodes differ in A: a 1, b not told',
    ])
    expect(differences([])).toEqual([])
  })
})
