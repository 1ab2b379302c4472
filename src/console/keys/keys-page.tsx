import { useState } from 'preact/hooks'
import type { ApiKey, ServiceClient } from '../../client/index.js'
import { numberType, sameView, useAddress } from '../parts/address.js'
import { CardTable, Pages } from '../parts/card-table.js'
import { Field } from '../parts/field.js'
import { counted, keyDigits } from '../parts/format.js'
import { type Loaded, Read, useLoaded } from '../parts/load.js'
import { NewKey } from '../parts/new-key.js'
import { useNow } from '../parts/now.js'
import { principalText, scopeMeanings } from '../parts/labels.js'
import { Principal } from '../parts/principal.js'
import { hasScope, type SignedIn, type WhoAmI } from '../parts/session.js'
import { Empty, Name, ScopedButton, Time } from '../parts/texts.js'
import { sortedRows, type Sorting, useSorting } from '../parts/sort.js'
import { goTo, keysLink } from '../route.js'
import { Confirm } from '../parts/confirm.js'

/** The API keys of the server, by name, or those that the address searches. */
export function KeysPage({ session, search }: { session: SignedIn; search: string }) {
  const { service, who } = session
  const [isCreating, setCreating] = useState(false)
  const [deleting, setDeleting] = useState<ApiKey | undefined>(undefined)
  // A search begins with its first page.
  const setSearch = (text: string): void => goTo(sameView(keysLink(text), { from: '' }), 'replace')
  const isAllowed = hasScope(who, 'admin:*') && who.agents.length === 0
  const read = useLoaded<ApiKey[] | undefined>('', async (signal) =>
    isAllowed ? readKeys(service, signal) : undefined,
  )
  const { loaded, reload } = read
  return (
    <div class="page">
      <div class="head">
        <h1>Keys</h1>
        <ScopedButton
          text="New key"
          class="primary"
          allowed={isAllowed}
          scope="admin:*"
          onClick={() => setCreating(true)}
        />
      </div>
      <p class="lead">
        A key gives a program or a person access with certain permissions. Records store the ID of the key
        that wrote them, so create a separate key for each program and person.
      </p>
      {isAllowed && <Search search={search} set={setSearch} loaded={loaded} />}
      {isAllowed ? (
        <Read of={read} what="keys">
          {(value) =>
            value !== undefined && <Keys keys={value} search={search} who={who} remove={setDeleting} />
          }
        </Read>
      ) : (
        <Empty title="This key cannot list keys">
          Sign in with the root key, or with a key that has <code>admin:*</code> and is not limited to agents.
        </Empty>
      )}
      {isCreating && <NewKey session={session} created={reload} close={() => setCreating(false)} />}
      {deleting && (
        <DeleteKey session={session} apiKey={deleting} done={reload} close={() => setDeleting(undefined)} />
      )}
    </div>
  )
}

function Search(props: {
  search: string
  set: (search: string) => void
  loaded: Loaded<ApiKey[] | undefined>
}) {
  const { search, set, loaded } = props
  const count = loaded.value === undefined ? undefined : found(loaded.value, search).length
  return (
    <div class="tools">
      <Field type="search" name="Name or ID contains" value={search} set={set} />
      <p class="muted total" role="status">
        {count === undefined ? '' : counted(count, 'key')}
      </p>
    </div>
  )
}

function Keys(props: {
  keys: readonly ApiKey[]
  search: string
  who: WhoAmI
  remove: (key: ApiKey) => void
}) {
  const { keys, search, who, remove } = props
  const [shownFrom = 0, setFrom] = useAddress('from', numberType)
  const names = new Map(keys.map(({ key_id: id, name }) => [id, name]))
  const sorting = useSorting(sortKeysOf(names), { column: 'Name', isDescending: false })
  const matching = sortedRows(found(keys, search), sorting)
  const from = shownFrom < matching.length ? shownFrom - (shownFrom % PAGE_KEYS) : 0
  const shown = matching.slice(from, from + PAGE_KEYS)
  if (shown.length === 0 && search !== '') {
    return (
      <Empty title={`No keys match “${search}”`}>
        The search is case-insensitive. Try a shorter text, or create a new key.
      </Empty>
    )
  }
  if (keys.length === 0) {
    return (
      <Empty title="No keys yet">
        The root key has all permissions. Create a key with “New key” for each program and person, and store
        the root key in a safe place.
      </Empty>
    )
  }
  return (
    <>
      <CardTable
        name="Keys"
        class="keys"
        rows={shown}
        keyOf={({ key_id: id }) => id}
        sorting={sorting}
        long={['Name', 'Agents', 'Created by']}
        head={['Name', (key) => <KeyName apiKey={key} isOwn={key.key_id === who.principal} />]}
        cells={{
          Permissions: ({ scopes }) => <Codes codes={scopes} titleOf={(scope) => scopeMeanings[scope]} />,
          Agents: ({ agents }) =>
            agents.length === 0 ? 'All' : <Codes codes={agents} titleOf={() => undefined} />,
          'Created by': ({ made_by: id }) => <Principal id={id} names={names} who={who} />,
          Created: ({ created_at_ms: ms }) => <Time ms={ms} />,
          'Last used': ({ last_used_at_ms: ms }) =>
            ms === null ? <span class="muted">Never</span> : <Time ms={ms} />,
          Expires: ({ expires_at_ms: ms }) => <Expiry ms={ms} />,
        }}
        action={[
          'Delete',
          (key) => (
            <button type="button" class="quiet" aria-label={`Delete ${key.name}`} onClick={() => remove(key)}>
              Delete
            </button>
          ),
        ]}
      />
      <Pages
        hasPrevious={from > 0}
        next={from + PAGE_KEYS < matching.length ? String(from + PAGE_KEYS) : undefined}
        goBack={() => setFrom(from - PAGE_KEYS)}
        goNext={(next) => setFrom(Number(next))}
      />
    </>
  )
}

function sortKeysOf(names: ReadonlyMap<string, string>): Sorting<ApiKey>['keys'] {
  return {
    Name: ({ name }) => name,
    'Created by': ({ made_by: id }) => names.get(id) ?? principalText(id),
    Created: ({ created_at_ms: ms }) => ms,
    'Last used': ({ last_used_at_ms: ms }) => ms,
    Expires: ({ expires_at_ms: ms }) => ms,
  }
}

function KeyName({ apiKey: { key_id: id, name }, isOwn }: { apiKey: ApiKey; isOwn: boolean }) {
  return (
    <>
      <span class="key-name">
        <Name text={name} />
      </span>
      <span class="muted">
        {' '}
        <code title={id}>…{keyDigits(id)}</code>
        {isOwn && <span class="badge">this key</span>}
      </span>
    </>
  )
}

function Expiry({ ms }: { ms: number | null }) {
  const nowMs = useNow()
  if (ms === null) return <span class="muted">Never</span>
  return (
    <span>
      <Time ms={ms} /> {ms <= nowMs && <span class="badge erased">expired</span>}
    </span>
  )
}

function Codes<C extends string>(props: { codes: readonly C[]; titleOf: (code: C) => string | undefined }) {
  return (
    <span class="words">
      {props.codes.map((code) => (
        <code key={code} title={props.titleOf(code)}>
          {code}
        </code>
      ))}
    </span>
  )
}

/** The number of keys on a page. */
const PAGE_KEYS = 100
/** The number of keys that one request reads. */
const READ_KEYS = 1_000

/** Reads all keys, of which a server has at most 10,000, because the server lists them by id. */
async function readKeys({ apiKeys }: ServiceClient, signal: AbortSignal): Promise<ApiKey[]> {
  const keys: ApiKey[] = []
  for await (const key of apiKeys.listAll({ limit: READ_KEYS, signal })) keys.push(key)
  return keys
}

/** The keys whose name (case-insensitive) or id contains a text. */
function found(keys: readonly ApiKey[], search: string): readonly ApiKey[] {
  const wanted = search.trim().toLowerCase()
  return keys.filter(({ name, key_id: id }) => name.toLowerCase().includes(wanted) || id.includes(wanted))
}

const NAMES_SHOWN = 5

/** A dialog that deletes a key, after listing the consequences. */
function DeleteKey(props: { session: SignedIn; apiKey: ApiKey; done: () => void; close: () => void }) {
  const { session, apiKey, done, close } = props
  const { key_id: id, name } = apiKey
  const heading = (
    <>
      Delete key “<Name text={name} />”
    </>
  )
  return (
    <Confirm
      change={{
        title: `Delete ${name}`,
        heading,
        button: 'Delete key',
        confirm: { wanted: keyDigits(id), what: 'the last 8 digits of its ID' },
        apply: () => session.service.apiKeys.remove(id),
        close(isDeleted) {
          close()
          if (isDeleted) done()
        },
      }}
    >
      <Consequences session={session} apiKey={apiKey} />
    </Confirm>
  )
}

function Consequences({ session: { service, who }, apiKey }: { session: SignedIn; apiKey: ApiKey }) {
  const { key_id: id } = apiKey
  const { loaded } = useLoaded(id, async (signal) => {
    const created: string[] = []
    for await (const one of service.apiKeys.listAll({ signal }))
      if (one.made_by === id) created.push(one.name)
    return created
  })
  return (
    <>
      <h3>What ends immediately and permanently</h3>
      <ul>
        <li>Requests with this key are refused, and streams opened with it end.</li>
        <li>A key that it has proposed and that is still pending is not created.</li>
        {id === who.principal && (
          <li>
            <strong>You are signed in with this key and will be signed out.</strong>
          </li>
        )}
      </ul>
      <h3>What stays</h3>
      <ul>
        <li>All records that it wrote, and its other proposals.</li>
        <li>Its ID on the audit strand, with the keys that created and deleted it.</li>
      </ul>
      {loaded.kind === 'loaded' && <p>{createdText(loaded.value)}</p>}
    </>
  )
}

function createdText(names: readonly string[]): string {
  if (names.length === 0) return 'This key has created no other keys.'
  const shown = names.slice(0, NAMES_SHOWN).map((one) => `“${one}”`)
  const more = names.length > NAMES_SHOWN ? ' and others' : ''
  const stay = names.length === 1 ? 'stays' : 'stay'
  return `${counted(names.length, 'key')} that it created ${stay}: ${shown.join(', ')}${more}. Delete them too if they should not be used.`
}
