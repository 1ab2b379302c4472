import { beforeEach, describe, expect, it } from 'vitest'
import type { HttpResponse } from '../../../../src/front/door/door.js'
import { ownBodies, ownUnsent } from '../../../../src/front/limits/bounds.js'
import { Exchange } from '../../../../src/front/http/exchange.js'
import { OpenUploads } from '../../../../src/front/limits/uploads.js'
import type { Principal } from '../../../../src/front/routes/route.js'

/*
 * Large answers that wait for their readers, and what ends them. The buffers of a real connection on one machine take a whole
 * page at once, so this one takes nothing until it is told to.
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

  /** The client reads all of it. */
  read(): void {
    this.finished = true
    this.#writable(0)
  }
}

const claims = { iat: 0, exp: 9_000_000_000, jti: 'j', iss: 'i', sid: 's', amr: [] }
const who = { sub: 'usr_1', email: 'a@b.c', app_metadata: {}, user_metadata: {} }
const user: Principal = {
  id: 'user::usr_1',
  scopes: new Set(),
  agents: [],
  user: { namespace: { id: '', agent: 'default' }, claims: { ...who, ...claims }, access: { claims: who } },
}
const key: Principal = { id: 'key', scopes: new Set(['records:read']), agents: [] }

let uploads: OpenUploads
const unsent = ownUnsent()

beforeEach(() => {
  uploads = new OpenUploads(ownBodies())
})

/** A large answer that is on its way to a principal; policies of `agents` decided what it shows. */
async function sending(principal: Principal, ...agents: string[]): Promise<SlowConnection> {
  const connection = new SlowConnection()
  const about = { requestId: 'r', allowedOrigin: '', headOnly: false, isLast: false, isKept: false, unsent }
  const exchange = new Exchange(connection.response, about, { done() {} })
  const held = { principal, owner: principal.id, agents: new Set(agents) }
  exchange.onLarge = () => {
    const answer = uploads.hold(held, () => exchange.abort())
    return () => answer.release()
  }
  exchange.answer({ status: 200, body: 'x'.repeat(1 << 20) })
  await new Promise((resolve) => setImmediate(resolve))
  return connection
}

const changed = (...agents: string[]) => uploads.endByPolicies((agent) => agents.includes(agent))

describe('a large answer', () => {
  it('ends with a change of the policies that decided what it shows, and of no others', async () => {
    const [one, other, ofKey] = [await sending(user, 'a', 'b'), await sending(user, 'c'), await sending(key)]
    changed('d')
    expect([one, other, ofKey].map(({ closed }) => closed)).toEqual([false, false, false])
    changed('b')
    expect([one, other, ofKey].map(({ closed }) => closed)).toEqual([true, false, false])
    expect(unsent.hasRoom(user.id)).toBe(true)
  })

  it('ends with its credential', async () => {
    const [ofUser, ofKey] = [await sending(user, 'a'), await sending(key)]
    uploads.endOf(key.id)
    expect([ofUser, ofKey].map(({ closed }) => closed)).toEqual([false, true])
  })

  it('is forgotten when it was read', async () => {
    const connection = await sending(user, 'a')
    connection.read()
    changed('a')
    uploads.endOf(user.id)
    expect(connection.closed).toBe(false)
  })
})
