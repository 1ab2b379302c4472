import { beforeEach, describe, expect, it } from 'vitest'
import type { HttpResponse } from '../../../../src/front/engine/http-listener.js'
import { answerBytes, bodyBytes } from '../../../../src/front/limits/bounds.js'
import { Quota } from '../../../../src/base/quota.js'
import { BodyBuffers } from '../../../../src/front/http/body-buffers.js'
import { Exchange } from '../../../../src/front/http/exchange.js'
import { OpenTransfers } from '../../../../src/front/limits/transfers.js'
import type { Principal } from '../../../../src/front/routes/route.js'

/*
 * Large answers that clients read slowly, and what ends them. The buffers of a real connection on one machine
 * take a whole page, so this fake connection accepts nothing until the test says so.
 */

class SlowConnection {
  closed = false
  finished = false
  #aborted = () => {}
  #writable: (offset: number) => boolean = () => true

  readonly response = {
    onAborted: (handler: () => void) => (this.#aborted = handler),
    onWritable: (handler: (offset: number) => boolean) => (this.#writable = handler),
    cork: (write: () => void) => write(),
    writeStatus: () => {},
    writeHeader: () => {},
    tryEnd: (): [boolean, boolean] => [this.finished, this.finished],
    getWriteOffset: () => 0,
    close: () => {
      this.closed = true
      this.#aborted()
    },
  } as unknown as HttpResponse

  /** The client reads the whole answer. */
  read(): void {
    this.finished = true
    this.#writable(0)
  }
}

const claims = { iat: 0, exp: 9_000_000_000, jti: 'j', iss: 'i', sid: 's', amr: [] }
const userClaims = { sub: 'usr_1', email: 'a@b.c', app_metadata: {}, user_metadata: {} }
const user: Principal = {
  id: 'user::usr_1',
  scopes: new Set(),
  agents: [],
  user: {
    namespace: { id: '', agent: 'default' },
    claims: { ...userClaims, ...claims },
    access: { claims: userClaims },
  },
}
const key: Principal = { id: 'key', scopes: new Set(['records:read']), agents: [] }

let transfers: OpenTransfers
const unsent = new Quota(answerBytes)

beforeEach(() => {
  transfers = new OpenTransfers(new Quota(bodyBytes))
})

/** A large answer that is being sent to a principal; the row policies of `agents` apply to it. */
async function sending(principal: Principal, ...agents: string[]): Promise<SlowConnection> {
  const connection = new SlowConnection()
  const about = {
    requestId: 'r',
    allowedOrigin: '',
    headOnly: false,
    isLast: false,
    isKept: false,
    unsent,
    buffers: new BodyBuffers(),
  }
  const exchange = new Exchange(connection.response, about, { done() {} })
  const holding = { principal, holder: principal.id, agents: new Set(agents) }
  exchange.onLarge = () => {
    const answer = transfers.begin(holding, () => exchange.abort())
    return () => answer.finish()
  }
  exchange.answer({ status: 200, body: 'x'.repeat(1 << 20) })
  await new Promise((resolve) => setImmediate(resolve))
  return connection
}

const changePolicies = (...agents: string[]) =>
  transfers.endPoliciesChanged((agent) => agents.includes(agent))

describe('a large answer', () => {
  it('ends if the policies that apply to it change, but not if others change', async () => {
    const [affected, other, ofKey] = [
      await sending(user, 'a', 'b'),
      await sending(user, 'c'),
      await sending(key),
    ]
    changePolicies('d')
    expect([affected, other, ofKey].map(({ closed }) => closed)).toEqual([false, false, false])
    changePolicies('b')
    expect([affected, other, ofKey].map(({ closed }) => closed)).toEqual([true, false, false])
    expect(unsent.hasCapacity(user.id)).toBe(true)
  })

  it('ends when its credential becomes invalid', async () => {
    const [ofUser, ofKey] = [await sending(user, 'a'), await sending(key)]
    transfers.endPrincipal(key.id)
    expect([ofUser, ofKey].map(({ closed }) => closed)).toEqual([false, true])
  })

  it('is not ended after it was read', async () => {
    const connection = await sending(user, 'a')
    connection.read()
    changePolicies('a')
    transfers.endPrincipal(user.id)
    expect(connection.closed).toBe(false)
  })
})
