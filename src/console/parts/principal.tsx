import type { ComponentChildren } from 'preact'
import type { ServiceClient } from '../../client/index.js'
import { keysLink, userIdLink } from '../route.js'
import { keyDigits } from './format.js'
import { principalText } from './labels.js'
import { useLoaded } from './load.js'
import { canReadServer, type SignedIn, type WhoAmI } from './session.js'
import { Name } from './texts.js'
import { canReadUsers } from './users.js'

/** The names of API keys by their id. */
export type KeyNames = ReadonlyMap<string, string>

const noNames: KeyNames = new Map()
/** How long the names are used again before they are read again. Names never change. */
const FRESH_MS = 15_000
const readNames = new WeakMap<ServiceClient, { atMs: number; names: Promise<KeyNames> }>()

/** The names of all API keys, of which a server has at most 10,000; none for a key that cannot list keys. */
export async function readKeyNames({ service, who }: SignedIn): Promise<KeyNames> {
  if (!canReadServer(who)) return noNames
  const before = readNames.get(service)
  if (before !== undefined && Date.now() - before.atMs < FRESH_MS) return before.names
  const names = readAll(service)
  readNames.set(service, { atMs: Date.now(), names })
  names.catch(() => readNames.delete(service))
  return names
}

async function readAll({ apiKeys }: ServiceClient): Promise<KeyNames> {
  const names = new Map<string, string>()
  for await (const { key_id: id, name } of apiKeys.listAll()) names.set(id, name)
  return names
}

/** The names of the API keys; empty until they are read, and for a key that cannot list keys. */
export function useKeyNames(session: SignedIn): KeyNames {
  return useLoaded('key names', () => readKeyNames(session)).loaded.value ?? noNames
}

/** The author of a change: a key by its name, or a user, each with a link if the signed-in key can open it. */
export function Principal({ id, names, who }: { id: string; names: KeyNames; who: WhoAmI }) {
  const [kind, namespace, user] = id.split(':')
  if (kind === 'user' && user !== undefined) {
    return (
      <UserLink id={user} organism={namespace === '' ? undefined : namespace} who={who}>
        {principalText(id)}
      </UserLink>
    )
  }
  return <KeyLink id={id} names={names} />
}

/** An API key by its name, which links to it; by its last digits if the name is not known. */
export function KeyLink({ id, names }: { id: string; names: KeyNames }) {
  const name = names.get(id)
  if (name === undefined) return <span title={id}>{principalText(id)}</span>
  return (
    <a href={keysLink(id)} title={id}>
      <Name text={name} />
    </a>
  )
}

/** A user by its id, which links to the user if the signed-in key can open it. */
export function UserLink(props: {
  id: string
  organism: string | undefined
  who: WhoAmI
  children?: ComponentChildren
}) {
  const { id, organism, who, children = <code>…{keyDigits(id)}</code> } = props
  if (!canReadUsers(who, organism)) return <span title={id}>{children}</span>
  return (
    <a href={userIdLink(organism, id)} title={id}>
      {children}
    </a>
  )
}
