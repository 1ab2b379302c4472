import { hostname, networkInterfaces } from 'node:os'
import { refuse, type Refusal } from '../../base/errors.js'
import type { RequestHeaders } from './route.js'

const foreign = refuse(
  'foreign_request',
  'Expected a credential, or a Host of this machine and no page of another site: the server is in an open mode',
)

/** Names and addresses of this machine, as `Host` has them. They are read once: open modes are for development. */
let names: ReadonlySet<string> | undefined

function namesOfMachine(): ReadonlySet<string> {
  const addresses = Object.values(networkInterfaces()).flatMap((list = []) =>
    list.map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address)),
  )
  return new Set(['localhost', '127.0.0.1', '[::1]', hostname().toLowerCase(), ...addresses])
}

/**
 * Refuses a request without a credential that an open mode would serve, but which a web page may have sent from elsewhere: one
 * whose `Host` is a foreign name that leads here (DNS rebinding), or that a browser says comes from another site.
 * @returns 403 foreign_request
 */
export function foreignRefusal({
  host,
  fetchSite,
}: Pick<RequestHeaders, 'host' | 'fetchSite'>): Refusal | undefined {
  names ??= namesOfMachine()
  const name = host.toLowerCase().replace(/:\d*$/, '')
  const isOwn = names.has(name) || name.endsWith('.localhost')
  return isOwn && fetchSite !== 'cross-site' ? undefined : foreign
}
