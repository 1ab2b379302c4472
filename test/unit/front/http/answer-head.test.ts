import { expect, it } from 'vitest'
import { errorCatalogue, isErrorCode, refuse } from '../../../../src/base/errors.js'
import { writeRefusalFields } from '../../../../src/front/http/answer-head.js'

const busy = Object.entries(errorCatalogue).flatMap(([code, { status }]) =>
  isErrorCode(code) && status === 503 ? [code] : [],
)

it.each(busy)('sends Retry-After with %s, which is 503', (code) => {
  for (const [more, expected] of [
    [{}, '1'],
    [{ retryAfterSecs: 7 }, '7'],
  ] as const) {
    const written = new Map<string, string>()
    const response = { writeHeader: (name: string, value: string) => void written.set(name, value) }
    writeRefusalFields(response, refuse(code, 'Expected nothing', more), [])
    expect(Object.fromEntries(written)).toEqual({ 'Retry-After': expected })
  }
})
