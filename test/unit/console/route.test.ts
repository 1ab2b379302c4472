import { describe, expect, it } from 'vitest'
import {
  agentLink,
  keysLink,
  liveLink,
  parseRoute,
  queryOf,
  traceLink,
  userIdLink,
  usersLink,
} from '../../../src/console/route.js'

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
    '#/traces/4bf92f35',
  ])('are unknown: %s', (hash) => expect(parseRoute(hash)).toEqual({ screen: 'unknown' }))

  it('contain what a tab shows behind a question mark', () => {
    const query = 'types=reading&where=door.name+eq+a%3Fb%2Fc'
    for (const part of ['records', 'graph', 7] as const) {
      const link = agentLink('weather', part, query)
      expect(parseRoute(link)).toEqual(parseRoute(agentLink('weather', part)))
      expect(queryOf(link)).toBe(query)
    }
    expect(queryOf('#/agents')).toBe('')
  })

  it('name the agents of the live view once, at most 1,000', () => {
    const names = Array.from({ length: 1_500 }, (_none, at) => `agent-${at}`)
    expect(parseRoute(liveLink(names))).toEqual({ screen: 'live', agents: names.slice(0, 1_000) })
    expect(parseRoute('#/live/a,b,a')).toEqual({ screen: 'live', agents: ['a', 'b'] })
    expect(parseRoute('#/live')).toEqual({ screen: 'live', agents: undefined })
    for (const part of ['', 'a,', '%ff']) expect(parseRoute(`#/live/${part}`)).toEqual({ screen: 'unknown' })
  })

  it('lead to a trace, and to the times that are searched', () => {
    const id = '4bf92f3577b34da6a3ce929d0e0e4736'
    expect(parseRoute(traceLink(id))).toEqual({ screen: 'trace', id })
    const query = 'from=2026-01-02T03:04:05.000Z&to='
    const times = { fromMs: Date.UTC(2026, 0, 2, 3, 4, 5), toMs: undefined }
    expect(parseRoute(traceLink(id, times))).toEqual({ screen: 'trace', id })
    expect(queryOf(traceLink(id, times))).toBe(query)
  })

  it('lead to keys, and to users by e-mail or id, with or without an organization', () => {
    expect(parseRoute('#/keys')).toEqual({ screen: 'keys', search: '' })
    expect(parseRoute(keysLink('key_12/é'))).toEqual({ screen: 'keys', search: 'key_12/é' })
    const users = { screen: 'users', organism: undefined, email: undefined, id: undefined }
    expect(parseRoute('#/users')).toEqual(users)
    for (const organism of [undefined, 'acme', 'usr_1']) {
      expect(parseRoute(usersLink(organism))).toEqual({ ...users, organism })
      for (const email of ['ada@example.org', '~x@example.org'])
        expect(parseRoute(usersLink(organism, email))).toEqual({ ...users, organism, email })
      expect(parseRoute(userIdLink(organism, 'usr_1'))).toEqual({ ...users, organism, id: 'usr_1' })
    }
    for (const hash of ['#/users/~', '#/users/a/b', '#/users/~usr_1/acme', '#/keys/a/b', '#/keys/%ff'])
      expect(parseRoute(hash)).toEqual({ screen: 'unknown' })
  })

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
