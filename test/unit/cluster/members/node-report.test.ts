import { describe, expect, it } from 'vitest'
import {
  differences,
  leaseMsOf,
  decodeReport,
  encodeReport,
  encodeSettings,
} from '../../../../src/cluster/members/node-report.js'

const member = (node: string, settingsDigest: string) => ({ node, settingsDigest, report: '' })

describe('the report of a node', () => {
  it('is decoded as it was encoded', () => {
    const serving = { version: '1', servesSinceMs: 5 }
    expect(decodeReport({ report: encodeReport(serving) })).toEqual(serving)
    expect(decodeReport({ report: encodeReport({ version: '1', lagSecs: 0.5 }) })).toEqual({
      version: '1',
      lagSecs: 0.5,
    })
    expect(leaseMsOf({ settingsDigest: encodeSettings(10, { SERVICE_SIGNING: 'record' }) })).toBe(10_000)
  })

  it('is empty if the row has something else, such as text inserted into the database', () => {
    for (const report of ['', '{}', 'null', '[1]', '{"version":1}', '{"version":"1","lagSecs":"x"}'])
      expect(decodeReport({ report })).toEqual({ version: '' })
    for (const settingsDigest of ['', 'null', '7', 'lease 10', '{"SERVICE_CLUSTER_LEASE_SECS":"x"}'])
      expect(leaseMsOf({ settingsDigest })).toBe(0)
  })

  it('differs by setting, ordered by name, with the value of each node', () => {
    const [one, other] = [encodeSettings(10, { B: 'x', A: '1' }), encodeSettings(5, { B: 'x', A: '2' })]
    expect(differences([member('b', other), member('a', one)])).toEqual([
      'Nodes differ in A: a 1, b 2',
      'Nodes differ in SERVICE_CLUSTER_LEASE_SECS: a 10, b 5',
    ])
    expect(differences([member('a', one), member('b', one)])).toEqual([])
    // Only settings that do not have their defaults are reported.
    expect(differences([member('a', one), member('b', encodeSettings(10, { B: 'x' }))])).toEqual([
      'Nodes differ in A: a 1, b not set',
    ])
    expect(differences([])).toEqual([])
  })

  it('differs by build, also if the versions are the same, once each node has reported its build', () => {
    const running = (node: string, version: string) => ({
      ...member(node, encodeSettings(10, {})),
      report: encodeReport({ version }),
    })
    expect(differences([running('b', '1.0.0+two'), running('a', '1.0.0+one')])).toEqual([
      'Nodes run different builds, between which there are no links: a 1.0.0+one, b 1.0.0+two',
    ])
    expect(differences([running('a', '1.0.0+one'), running('b', '1.0.0+one')])).toEqual([])
    expect(differences([running('a', '1.0.0+one'), running('b', '')])).toEqual([])
  })
})
