import { describe, expect, it } from 'vitest'
import { agentLink, parseRoute } from '../../../src/console/route.js'

describe('addresses of the console', () => {
  it('lead to their screens', () => {
    expect(parseRoute('')).toEqual({ screen: 'start' })
    expect(parseRoute('#/')).toEqual({ screen: 'start' })
    expect(parseRoute('#/agents')).toEqual({ screen: 'agents' })
    expect(parseRoute('#/verify')).toEqual({ screen: 'verify' })
    expect(parseRoute('#/agents/weather')).toMatchObject({ agent: 'weather', tab: 'records', seq: undefined })
    expect(parseRoute('#/agents/weather/12')).toMatchObject({ tab: 'records', seq: 12 })
    expect(parseRoute('#/agents/weather/live')).toMatchObject({ tab: 'live', seq: undefined })
  })

  it.each([
    '#/nothing',
    '#/agents/a/b/c',
    '#/agents/a/nothing',
    '#/agents/a/012',
    '#/agents/%ff',
    '#/verify/x',
  ])('are unknown: %s', (hash) => expect(parseRoute(hash)).toEqual({ screen: 'unknown' }))

  it.each(['weather', 'guild::roof', 'server::log', 'a/b', '100%', 'é #?'])(
    'contain the agent name %s',
    (agent) => {
      for (const part of ['records', 'live', 'proof', 0, 7] as const) {
        const isSeq = typeof part === 'number'
        expect(parseRoute(agentLink(agent, part))).toEqual({
          screen: 'agent',
          agent,
          tab: isSeq ? 'records' : part,
          seq: isSeq ? part : undefined,
        })
      }
    },
  )
})
