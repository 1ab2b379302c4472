import { hash, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Namespace } from '../../auth/namespace.js'
import type { Clock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { AuthCaller } from '../routes/auth-route.js'
import type { Principal, RouteBase, TokenUser } from '../routes/route.js'
import type { ApiKeys } from './auth/api-keys.js'
import type { UserPrincipal } from './auth/tokens.js'
import type { StreamTickets, TicketUse } from './streams/tickets.js'

export interface CredentialSettings {
  /** SHA-256 of the root key. */
  rootKeyDigest: Buffer
  /** The most bytes of cached valid tokens of users. */
  tokenBytesMax: number
}

/** Identifies the user of a token (src/front/http/auth/tokens.ts). */
export interface TokenReader {
  identify(token: string): Promise<UserPrincipal | Refusal>
  revalidate(user: TokenUser): Refusal | undefined
}

/** The caller, or a refusal; as a promise where a token has to be verified first. */
export type Caller = Principal | Refusal | Promise<Principal | Refusal>

const root: Principal = { id: 'root', scopes: new Set(['admin:*']), agents: [] }
const anonymous: Principal = { id: 'anonymous', scopes: new Set(), agents: [] }

/** The root key's principal by its id; undefined for another id. */
export function builtInPrincipal(id: string): Principal | undefined {
  return id === root.id ? root : undefined
}

/** Whether a principal represents all callers without a credential. */
export function isAnonymous(principal: Principal): boolean {
  return principal === anonymous
}

const missing = refuse(
  'unauthorized',
  'Expected Authorization: Bearer with the root key, an API key or a token, or Basic with a key as the password',
)
const unknown = refuse('unauthorized', 'Unknown key')
const noToken = refuse('unauthorized', 'Expected Authorization: Bearer with the token of a user')
const otherNamespace = refuse('invalid_token', 'The token was issued by another namespace')

/** Looks like a JWT: three base64url parts. */
const tokenShape = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** A user whose token is valid, with the whole header that it came in. */
interface KnownUser {
  authorization: string
  principal: UserPrincipal
}

/**
 * Number of last characters of a token by which it is looked up: half of its signature, so that no two tokens
 * collide.
 */
const TOKEN_END_CHARACTERS = 43

/** Identifies callers by their credentials, and checks their access to routes (docs/SECURITY.md). */
export class Credentials {
  readonly #settings: CredentialSettings
  readonly #keys: ApiKeys
  readonly #tickets: Pick<StreamTickets, 'redeem'>
  /** Absent while the auth add-on is disabled. */
  readonly #tokens: TokenReader | undefined
  readonly #clock: Clock
  /**
   * Valid headers. A Map compares strings only if their seeded hashes are equal, so the time of a lookup
   * reveals nothing about its keys.
   */
  readonly #verified = new Map<string, Principal>()
  /** Valid tokens of users, which can expire or be revoked, by the last characters of the token. */
  readonly #users: LRUCache<string, KnownUser>
  #removalsSeen = 0

  constructor(
    settings: CredentialSettings,
    parts: {
      keys: ApiKeys
      tickets: Pick<StreamTickets, 'redeem'>
      clock: Clock
      tokens?: TokenReader
    },
  ) {
    this.#settings = settings
    this.#users = new LRUCache({
      maxSize: settings.tokenBytesMax,
      // The bytes of the header and of the claims in it.
      sizeCalculation: ({ authorization }) => authorization.length * 2,
    })
    this.#keys = parts.keys
    this.#tickets = parts.tickets
    this.#clock = parts.clock
    this.#tokens = parts.tokens
  }

  /** Whether a credential was valid before; it may have ended since. */
  knows(authorization: string): boolean {
    const user = this.#users.peek(endOf(authorization))
    return user?.authorization === authorization || this.#verified.has(authorization)
  }

  /** The caller, if it is allowed to use the route; otherwise 401 or 403. */
  authorize(authorization: string, route: Access): Caller {
    if (route.scope === 'none') return anonymous
    const principal = this.#authenticate(authorization)
    if (principal instanceof Promise) {
      return principal.then((one) => ('code' in one ? one : allow(one, route)))
    }
    return 'code' in principal ? principal : allow(principal, route)
  }

  /** As `authorize`, for a stream that is opened with a ticket instead of a credential. */
  authorizeStream(ticket: string, use: TicketUse, route: Access): Caller {
    const found = this.#tickets.redeem(ticket, use)
    if (found instanceof Promise) return found.then((one) => this.#authorizeTicket(one, route))
    return this.#authorizeTicket(found, route)
  }

  #authorizeTicket(principal: Principal | undefined, route: Access): Principal | Refusal {
    if (principal === undefined) {
      return refuse(
        'unauthorized',
        'The ticket is unknown or has expired, or its first use was from another address or for another stream',
      )
    }
    const used = this.#keys.use(principal, this.#clock())
    if ('code' in used) return used
    // The user of a ticket may have signed out since it was issued.
    const ended = principal.user === undefined ? undefined : this.#tokens?.revalidate(principal.user)
    if (ended !== undefined) return ended
    return route.scope === 'none' ? principal : allow(principal, route)
  }

  /**
   * The caller on an auth route of a namespace. Routes for anyone admit requests without a credential or with
   * an invalid one.
   */
  authorizeAuth(authorization: string, caller: AuthCaller, namespace: Namespace): Caller {
    if (caller === 'user') return this.#authorizeUser(authorization, namespace)
    const principal = authorization === '' ? missing : this.#authenticateKey(authorization)
    if (caller === 'anyone') return 'code' in principal ? anonymous : principal
    if ('code' in principal) return principal
    // Such a key could create a user with access to more agents.
    if (principal.agents.length > 0)
      return refuse('forbidden', 'A key that is limited to agents cannot use this route')
    return allow(principal, { scope: namespace.id === '' ? 'admin:*' : 'admin:organisms' })
  }

  #authorizeUser(authorization: string, namespace: Namespace): Caller {
    const user = this.#knownUser(authorization) ?? this.#identify(authorization)
    if (user === undefined) return noToken
    const checkNamespace = (found: UserPrincipal | Refusal) =>
      !('code' in found) && found.user.namespace.id !== namespace.id ? otherNamespace : found
    return user instanceof Promise ? user.then(checkNamespace) : checkNamespace(user)
  }

  #authenticate(authorization: string): Caller {
    if (authorization === '') return missing
    // Users first: looking up a key would hash the whole of a long text.
    const known = this.#knownUser(authorization) ?? this.#knownKey(authorization)
    if (known !== undefined) return known
    const key = keyTextOf(authorization)
    if (key === undefined) return missing
    return this.#keyOf(authorization, key) ?? this.#identify(authorization) ?? unknown
  }

  #authenticateKey(authorization: string): Principal | Refusal {
    const known = this.#knownKey(authorization)
    if (known !== undefined) return known
    const key = keyTextOf(authorization)
    if (key === undefined) return missing
    return this.#keyOf(authorization, key) ?? unknown
  }

  /** A user with a cached token, or why the token is no longer valid. */
  #knownUser(authorization: string): UserPrincipal | Refusal | undefined {
    const known = this.#users.get(endOf(authorization))
    if (known?.authorization !== authorization) return undefined
    return this.#tokens?.revalidate(known.principal.user) ?? known.principal
  }

  /** The user of a token; undefined if the credential does not look like a token. */
  #identify(authorization: string): Promise<UserPrincipal | Refusal> | undefined {
    const token = bearerOf(authorization)
    if (token === undefined || !tokenShape.test(token)) return undefined
    return this.#tokens?.identify(token).then((one) => {
      if (!('code' in one)) this.#users.set(endOf(authorization), { authorization, principal: one })
      return one
    })
  }

  /** A cached key that was not deleted since; 401 if it has expired. */
  #knownKey(authorization: string): Principal | Refusal | undefined {
    if (this.#removalsSeen !== this.#keys.removals || this.#verified.size > limits.cachedCredentialsMax) {
      this.#removalsSeen = this.#keys.removals
      this.#verified.clear()
    }
    const known = this.#verified.get(authorization)
    return known?.key === undefined ? known : this.#keys.use(known, this.#clock())
  }

  #keyOf(authorization: string, key: string): Principal | Refusal | undefined {
    const digest = hash('sha256', key, 'hex')
    const isRoot = timingSafeEqual(Buffer.from(digest, 'hex'), this.#settings.rootKeyDigest)
    const principal = isRoot ? root : this.#keys.find(digest)
    if (principal === undefined) return undefined
    this.#verified.set(authorization, principal)
    return this.#keys.use(principal, this.#clock())
  }
}

type Access = Pick<RouteBase, 'scope' | 'orScopes' | 'users'>

function allow(principal: Principal, { scope, orScopes, users }: Access): Principal | Refusal {
  if (principal.user !== undefined) {
    return users === true
      ? principal
      : refuse('forbidden', 'This route requires a key, not the token of a user')
  }
  if (scope === 'none' || scope === 'any') return principal
  if (principal.scopes.has(scope) || principal.scopes.has('admin:*')) return principal
  if (orScopes?.some((one) => principal.scopes.has(one)) === true) return principal
  return refuse('forbidden', `This route requires a key with the scope ${scope}`)
}

/**
 * The part of a user's token by which it is looked up: hashing the whole token would be most of the cost of a
 * lookup.
 */
function endOf(authorization: string): string {
  return authorization.slice(-TOKEN_END_CHARACTERS)
}

/**
 * The key of `Authorization: Bearer`, or the password of `Authorization: Basic` (RFC 7617), whatever the user
 * name.
 */
function keyTextOf(authorization: string): string | undefined {
  const basic = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(authorization)?.[1]
  if (basic === undefined) return bearerOf(authorization)
  const pair = Buffer.from(basic, 'base64').toString('latin1')
  const colon = pair.indexOf(':')
  return colon < 0 ? undefined : pair.slice(colon + 1)
}

/** The credential of `Authorization: Bearer`; scheme names are case-insensitive (RFC 9110, 11.1). */
function bearerOf(authorization: string): string | undefined {
  return /^bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1]
}
