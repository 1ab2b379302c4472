// @run on the built program
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import {
  isAllowedRedirect,
  parseAllowedRedirect,
  parseRedirect,
  redirectWith,
} from '../../../src/auth/redirect.js'

function allows(list: string[], text: string): boolean {
  const allowed = list.map((one) => parseAllowedRedirect(one))
  if (allowed.some((one) => one === undefined)) throw new Error(`Expected a list, got ${list.join()}`)
  const url = parseRedirect(text)
  return (
    url !== undefined &&
    isAllowedRedirect(
      url,
      allowed.filter((one) => one !== undefined),
    )
  )
}

const host = 'https://app.example.com'

describe('an address of the list', () => {
  it.each([
    [`${host}/cb`, `${host}/cb`],
    [`${host}/cb`, `${host}/cb/`],
    [`${host}/cb`, `${host}/cb/deeper/still`],
    [`${host}/cb`, `${host}/cb?next=/x&y=..%2F`],
    [`${host}/cb`, 'HTTPS://APP.example.com:443/cb'],
    [`${host}/cb/`, `${host}/cb/`],
    [`${host}/cb/`, `${host}/cb/deeper`],
    [host, host],
    [host, `${host}/`],
    [`${host}/`, `${host}/anything`],
    [`${host}/cb`, `${host}/cb/na%C3%AFve`],
    [`${host}/cb`, `${host}/cb/v1..2`],
    ['http://localhost:3000/cb', 'http://localhost:3000/cb'],
  ])('%s allows %s', (one, text) => {
    expect(allows([one], text)).toBe(true)
  })

  it.each([
    [`${host}/cb`, `${host}/cbx`],
    [`${host}/cb`, `${host}/CB`],
    [`${host}/cb`, `${host}/c`],
    [`${host}/cb`, `${host}/%63b`],
    [`${host}/cb`, `${host}/open?x=/cb`],
    [`${host}/cb/`, `${host}/cb`],
    [host, `${host}.evil.test`],
    [host, 'https://app.example.community'],
    [host, 'https://sub.app.example.com'],
    [host, 'http://app.example.com'],
    [host, `${host}:8443`],
    [host, `${host}.`],
  ])('%s does not allow %s', (one, text) => {
    expect(parseRedirect(text)).toBeInstanceOf(URL)
    expect(allows([one], text)).toBe(false)
  })

  it.each([
    '',
    '*',
    'https://*.example.com',
    'app.example.com',
    'https://user@app.example.com',
    `${host}/cb?x=1`,
    `${host}/cb?`,
    `${host}/cb#x`,
    `${host}/../cb`,
    'javascript:alert(1)',
    'com.example.app:/cb',
    'file:///cb',
  ])('is never %j', (text) => {
    if (text.includes('*.')) expect(parseAllowedRedirect(text)?.origin ?? '').not.toBe(host)
    else expect(parseAllowedRedirect(text)).toBeUndefined()
  })
})

describe('a redirect address', () => {
  it.each([
    'https://app.example.com@evil.test/cb',
    'https://:@app.example.com/cb',
    'https:app.example.com/cb',
    'https:/app.example.com/cb',
    'https:///app.example.com/cb',
    'https://app.example.com\\@evil.test/cb',
    'https://evil.test\\.app.example.com/cb',
    `${host}\\cb`,
    `${host}/cb\\..\\open`,
    `${host}/cb/..`,
    `${host}/cb/../open`,
    `${host}/cb/./x`,
    `${host}/cb/%2e%2e/open`,
    `${host}/cb/.%2e/open`,
    `${host}/cb/%2E`,
    `${host}/cb/..;x=1/open`,
    `${host}/cb/%2e%2e%3bx/open`,
    `${host}/cb/..%2fopen`,
    `${host}/cb%5c..%5copen`,
    `${host}/cb/%252e%252e/open`,
    `${host}/cb/%00`,
    `${host}/cb/%0d%0aSet-Cookie:x`,
    `${host}/cb/%7f`,
    `${host}/cb/%`,
    `${host}/cb/%zz`,
    `${host}//cb`,
    `${host}/cb//evil.test`,
    `${host}/cb#`,
    `${host}/cb#token=x`,
    `${host}/c\tb`,
    `${host}/cb\n`,
    ` ${host}/cb`,
    `${host}/cb\u0000`,
    `${host}/c\u00e4`,
    'https://\u0430pp.example.com/cb',
    `${host}/cb?token=x`,
    `${host}/cb?a=1&refresh%5Ftoken=x`,
    `${host}/cb?error=x`,
    `${host}/${'x'.repeat(2_048)}`,
    'https://app.example.com:99999/cb',
    `${host}/cb/%cb`,
    `${host}/%c0%ae%c0%ae/cb`,
    'https://[::1/cb',
    'data:text/html,x',
  ])('is never %j', (text) => {
    expect(parseRedirect(text)).toBeUndefined()
  })

  it('always has the listed origin and path when it is accepted', () => {
    const parts = fc.constantFrom(
      ...'/ \\ @ . .. %2e %2f %5c ; : ? # // cb evil.test % & https: http: token= [ ] %25 443'.split(' '),
      '\t',
      '\n',
      '\u3002',
      '\uff0f',
    )
    const around = fc.array(parts, { maxLength: 8 }).map((list) => list.join(''))
    fc.assert(
      fc.property(around, around, (before, after) => {
        for (const text of [
          `${host}/cb${after}`,
          `https://${before}app.example.com/cb${after}`,
          `${host}${after}`,
        ]) {
          if (!allows([`${host}/cb`], text)) continue
          const url = new URL(text)
          expect(url.origin).toBe(host)
          expect(decodeURIComponent(url.pathname)).toMatch(/^\/cb(?:$|\/(?!\.{1,2}(?:[/;\\]|$)))/)
          expect(url.href.split('#')).toHaveLength(1)
          expect(url.username + url.password).toBe('')
        }
      }),
      { numRuns: 5_000 },
    )
  })

  it('is checked without throwing, and refused unless it is in the list', () => {
    const anything = fc.oneof(fc.string({ unit: 'binary' }), fc.webUrl({ withQueryParameters: true }))
    fc.assert(
      fc.property(anything, (text) => {
        expect(allows([`${host}/cb`], text)).toBe(false)
      }),
      { numRuns: 5_000 },
    )
  })
})

describe('the results', () => {
  it('are appended to an existing query', () => {
    expect(redirectWith(`${host}/cb`, 'query', { token: 'a.b-c', email: 'a+b@c.d' })).toBe(
      `${host}/cb?token=a.b-c&email=a%2Bb%40c.d`,
    )
    expect(redirectWith(`${host}/cb?x=1`, 'query', { error: 'e' })).toBe(`${host}/cb?x=1&error=e`)
    expect(redirectWith(`${host}/cb?x=1`, 'fragment', { error: 'e' })).toBe(`${host}/cb?x=1#error=e`)
  })
})
