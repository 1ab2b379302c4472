// @run by two fronts
import { expect, it } from 'vitest'
import { deliverOverRestart } from '../support/server/otlp-exporters.js'

it('loses no record of an exporter with default settings when the server is killed', async () => {
  const counts = await deliverOverRestart(2_000)
  for (const agent of ['spans-json', 'spans-protobuf'])
    expect([agent, counts[agent]]).toEqual([agent, [2_000, 2_000]])
  for (const agent of ['logs-json', 'logs-protobuf'])
    expect([agent, counts[agent]?.[1]]).toEqual([agent, 2_000])
})
