import { useState } from 'preact/hooks'
import type { ApiKey } from '../../client/index.js'
import { CardCell, CardRow, CardTable } from '../parts/card-table.js'
import { counted, keyDigits } from '../parts/format.js'
import { type Loaded, useLoaded } from '../parts/load.js'
import { useNow } from '../parts/now.js'
import { Pages } from '../parts/pages.js'
import { principalText } from '../parts/principal.js'
import { Empty, Failure, Loading, Name, ScopedButton, Time } from '../parts/texts.js'
import { type SignedIn, may, type WhoAmI } from '../parts/session.js'
import { scopeMeanings } from '../parts/words.js'
import { DeleteKey } from './delete-key.js'
import { NewKey } from '../parts/new-key.js'
import { found, PAGE_KEYS, readKeys, type ReadKeys } from './read-keys.js'

/** The API keys of the server: who may do what, and until when. */
export function KeysPage({ session }: { session: SignedIn }) {
  const { service, who } = session
  // The cursors that led to this page, as on the list of agents.
  const [cursors, setCursors] = useState<string[]>([])
  const [isMaking, setMaking] = useState(false)
  const [leaving, setLeaving] = useState<ApiKey | undefined>(undefined)
  const [search, setSearch] = useState('')
  const cursor = cursors.at(-1)
  const isAllowed = may(who, 'admin:*') && who.agents.length === 0
  const isSearching = search !== ''
  const { loaded, reload } = useLoaded<ReadKeys | undefined>(
    isSearching ? 'every key' : (cursor ?? ''),
    async (signal) => (isAllowed ? readKeys(service, { every: isSearching, cursor, signal }) : undefined),
  )
  return (
    <div class="page">
      <div class="head">
        <h1>Keys</h1>
        <ScopedButton class="primary" allowed={isAllowed} scope="admin:*" onClick={() => setMaking(true)}>
          New key
        </ScopedButton>
      </div>
      <p class="lead">
        A key lets a program or a person in, and says what they may do. The strands record who did what by the
        id of the key, so give everybody their own.
      </p>
      {isAllowed && <Search search={search} set={setSearch} loaded={loaded} />}
      {isAllowed ? (
        <Keys loaded={loaded} search={search} who={who} retry={reload} remove={setLeaving} />
      ) : (
        <Empty title="This key may not see other keys">
          Sign in with the root key, or with a key that has <code>admin:*</code> and is not limited to agents.
        </Empty>
      )}
      <Pages
        hasBefore={!isSearching && cursors.length > 0}
        next={loaded.value?.next}
        goBack={() => setCursors(cursors.slice(0, -1))}
        goOn={(to) => setCursors([...cursors, to])}
      />
      {isMaking && <NewKey session={session} made={reload} close={() => setMaking(false)} />}
      {leaving && (
        <DeleteKey session={session} apiKey={leaving} done={reload} close={() => setLeaving(undefined)} />
      )}
    </div>
  )
}

function Search(props: {
  search: string
  set: (search: string) => void
  loaded: Loaded<ReadKeys | undefined>
}) {
  const { search, set, loaded } = props
  const count = loaded.value === undefined ? undefined : found(loaded.value.keys, search).length
  return (
    <div class="tools">
      <label class="field">
        Name or id contains
        <input
          type="search"
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          onInput={(event) => set(event.currentTarget.value.trim())}
        />
      </label>
      <p class="muted total" role="status">
        {search === '' || count === undefined
          ? ''
          : `${counted(count, 'key')}${count > PAGE_KEYS ? `, ${PAGE_KEYS} of them shown` : ''}`}
      </p>
    </div>
  )
}

function Keys(props: {
  loaded: Loaded<ReadKeys | undefined>
  search: string
  who: WhoAmI
  retry: () => void
  remove: (key: ApiKey) => void
}) {
  const { loaded, search, who, retry, remove } = props
  if (loaded.kind === 'failed') return <Failure message={loaded.message} retry={retry} />
  if (loaded.value === undefined) return <Loading what="keys" />
  const { keys } = loaded.value
  const shown = found(keys, search).slice(0, PAGE_KEYS)
  if (shown.length === 0 && search !== '') {
    return (
      <Empty title={`No key’s name or id contains “${search}”`}>
        Capital and small letters are the same. Shorten it, or make a new key.
      </Empty>
    )
  }
  if (keys.length === 0) {
    return (
      <Empty title="No keys yet">
        The root key may do everything. Make a key with “New key” for each program and person, and put the
        root key away.
      </Empty>
    )
  }
  const names = new Map(keys.map(({ key_id: id, name }) => [id, name]))
  return (
    <CardTable name="Keys" class="keys" columns={columns}>
      {shown.map((key) => (
        <KeyRow
          key={key.key_id}
          apiKey={key}
          isOwn={key.key_id === who.principal}
          maker={names.get(key.made_by)}
          remove={() => remove(key)}
        />
      ))}
    </CardTable>
  )
}

const columns = [
  'Name',
  'May',
  'Agents',
  'Made by',
  'Made',
  'Last used',
  'Expires',
  { name: 'Delete', look: 'hidden' },
] as const

function KeyRow(props: { apiKey: ApiKey; isOwn: boolean; maker: string | undefined; remove: () => void }) {
  const { apiKey, isOwn, maker, remove } = props
  const { key_id: id, name, scopes, agents, made_by: madeBy } = apiKey
  const { created_at_ms: createdAtMs, last_used_at_ms: lastUsedAtMs, expires_at_ms: expiresAtMs } = apiKey
  return (
    <CardRow
      head={
        <>
          <span class="key-name">
            <Name text={name} />
          </span>
          <span class="muted">
            {' '}
            <code title={id}>…{keyDigits(id)}</code>
            {isOwn && <span class="badge">this one</span>}
          </span>
        </>
      }
    >
      <CardCell name="May">
        <Words words={scopes} titleOf={(scope) => scopeMeanings[scope]} />
      </CardCell>
      <CardCell name="Agents">
        {agents.length === 0 ? 'All' : <Words words={agents} titleOf={() => undefined} />}
      </CardCell>
      <CardCell name="Made by">
        {maker === undefined ? principalText(madeBy) : <Name text={maker} />}
      </CardCell>
      <CardCell name="Made">
        <Time ms={createdAtMs} />
      </CardCell>
      <CardCell name="Last used">
        {lastUsedAtMs === null ? <span class="muted">Never</span> : <Time ms={lastUsedAtMs} />}
      </CardCell>
      <CardCell name="Expires">
        <Expiry ms={expiresAtMs} />
      </CardCell>
      <td role="cell">
        <button type="button" class="quiet" aria-label={`Delete ${name}`} onClick={remove}>
          Delete
        </button>
      </td>
    </CardRow>
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

function Words<W extends string>(props: { words: readonly W[]; titleOf: (word: W) => string | undefined }) {
  return (
    <span class="words">
      {props.words.map((word) => (
        <code key={word} title={props.titleOf(word)}>
          {word}
        </code>
      ))}
    </span>
  )
}
