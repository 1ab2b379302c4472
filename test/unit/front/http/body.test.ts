import { expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { Quota } from '../../../../src/base/quota.js'
import type { HttpResponse } from '../../../../src/front/engine/http-listener.js'
import { BodyBuffers } from '../../../../src/front/http/body-buffers.js'
import { readRouteBody } from '../../../../src/front/http/body.js'
import { Exchange } from '../../../../src/front/http/exchange.js'
import { FrontTurn } from '../../../../src/front/http/front-turn.js'
import { answerBytes, bodyBytes } from '../../../../src/front/limits/bounds.js'
import { OpenTransfers } from '../../../../src/front/limits/transfers.js'
import type { Principal } from '../../../../src/front/routes/route.js'

// The rest of the body, which had arrived in the meantime, was read before the refusal was sent: the request
// was performed with an empty body.
it('performs no request that is refused while its body waits for memory', () => {
  let arrive: (part: ArrayBuffer, last: boolean) => void = () => {}
  const statuses: string[] = []
  const response = {
    onAborted: () => {},
    onData: (callback: typeof arrive) => (arrive = callback),
    pause: () => {},
    resume: () => {},
    cork: (write: () => void) => write(),
    writeStatus: (status: string) => statuses.push(status),
    writeHeader: () => {},
    end: () => {},
  } as unknown as HttpResponse
  const about = { requestId: 'x', allowedOrigin: '', headOnly: false, isLast: false, isKept: true }
  const memory = { unsent: new Quota(answerBytes), buffers: new BodyBuffers() }
  const exchange = new Exchange(response, { ...about, ...memory }, { done: () => {} })
  exchange.holderOf = () => 'key'
  const principal: Principal = { id: 'key', scopes: new Set(), agents: [] }
  const transfers = new OpenTransfers(new Quota(bodyBytes))
  const other = transfers.begin({ principal, holder: 'key' }, () => {})
  const size = 2 * limits.smallBodyBytesMax
  expect(other.reserve(limits.bodyBytesPerPrincipalMax - size)).toBe(true)

  const head = { contentLength: size, headers: { contentEncoding: '', contentType: '' } } as never
  const bodies: Uint8Array[] = []
  const handling = { transfers, turn: new FrontTurn() }
  readRouteBody(exchange, { bodyBytesMax: size, head, principal, handling }, (body) => bodies.push(body))
  arrive(new ArrayBuffer(size - 1), false)
  arrive(new ArrayBuffer(1), true)
  transfers.endPrincipal('key')

  expect(statuses).toEqual(['401 Unauthorized'])
  expect(bodies).toEqual([])
})
