import { useEffect } from 'preact/hooks'
import { ServiceError, type User, type UserPage as Found } from '../../client/index.js'
import { cursorsType, textType, useAddress } from '../parts/address.js'
import { CardTable, CursorPages, SortLimit } from '../parts/card-table.js'
import { Choice, Field } from '../parts/field.js'
import { counted, keyDigits } from '../parts/format.js'
import { Read, useLoaded } from '../parts/load.js'
import { Empty, Name, Time } from '../parts/texts.js'
import { usersLink } from '../route.js'
import { canReadUsers, namespaceOf, neededForUsers, readUserOfId, useOrganisms } from '../parts/users.js'
import type { Scope, SignedIn } from '../parts/session.js'
import { sortable, type Sorting, SORTED_MAX, useSorting, wholeList } from '../parts/sort.js'
import { LockedUntil, UserPage, type UsersRoute } from './user-page.js'

export function UsersPage({ session, route }: { session: SignedIn; route: UsersRoute }) {
  const { organism, email, id } = route
  const key = usersLink(organism, email)
  if (id !== undefined) return <UserOfId key={id} session={session} organism={organism} id={id} />
  if (email !== undefined) return <UserPage key={key} session={session} organism={organism} email={email} />
  return <UserList key={key} session={session} organism={organism} />
}

/** Leads from the id of a user to the page of the user, which has the e-mail in its address. */
function UserOfId(props: { session: SignedIn; organism: string | undefined; id: string }) {
  const { session, organism, id } = props
  const isAllowed = canReadUsers(session.who, organism)
  const read = useLoaded<User | undefined>(id, async (signal) =>
    isAllowed ? readUserOfId(namespaceOf(session.service, organism), id, signal) : undefined,
  )
  const email = read.loaded.value?.email
  useEffect(() => {
    if (email !== undefined) location.replace(usersLink(organism, email))
  }, [email])
  if (!isAllowed) return <NotAllowed organism={organism} />
  return (
    <div class="page">
      <h1>User</h1>
      <Read of={read} what="the user">
        {(found) =>
          found === undefined && (
            <Empty title={`User ${id} not found`}>
              The user may have been deleted. <a href={usersLink(organism)}>Back to the list</a>
            </Empty>
          )
        }
      </Read>
    </div>
  )
}

function NotAllowed({ organism }: { organism: string | undefined }) {
  return (
    <div class="page">
      <h1>User</h1>
      <NeedsScope scope={neededForUsers(organism)} />
    </div>
  )
}

const PAGE_USERS = 50

const sortKeys: Sorting<User>['keys'] = {
  'E-mail': ({ email }) => email,
  Verified: ({ verified }) => Number(verified),
  'Last sign-in': ({ last_login_at_ms: ms }) => ms,
  'Locked until': ({ locked_until_ms: ms }) => ms,
  Created: ({ created_at_ms: ms }) => ms,
}

function UserList({ session, organism }: { session: SignedIn; organism: string | undefined }) {
  const [prefix, setPrefix] = useAddress('begins', textType)
  const [cursors, setCursors] = useAddress('page', cursorsType)
  const sorting = useSorting(sortKeys)
  const isSorted = sorting.sort !== undefined
  const cursor = isSorted ? undefined : cursors.at(-1)
  const isAllowed = canReadUsers(session.who, organism)
  const read = useLoaded<Found | 'off' | undefined>(
    `${prefix} ${isSorted} ${cursor ?? ''}`,
    async (signal) => {
      if (!isAllowed) return undefined
      const { users } = namespaceOf(session.service, organism).auth
      const wanted = { prefix: prefix === '' ? undefined : prefix, signal }
      const readPage = (from: string | undefined) =>
        users.list({ ...wanted, cursor: from, limit: isSorted ? SORTED_MAX : PAGE_USERS })
      return (isSorted ? wholeList(readPage, joined) : readPage(cursor)).catch(offWhereDisabled)
    },
  )
  const found = read.loaded.value === 'off' ? undefined : read.loaded.value
  const search = (text: string): void => {
    setCursors([])
    setPrefix(text.trim())
  }
  return (
    <div class="page">
      <h1>Users</h1>
      <p class="lead">
        People who can sign in. Each organization has its own users, who have no access to other
        organizations.
      </p>
      <div class="tools">
        <NamespaceChoice session={session} organism={organism} />
        <Field type="search" name="E-mail begins with" value={prefix} set={search} />
        <p class="muted total" role="status">
          {found === undefined ? '' : counted(found.total, 'user')}
        </p>
      </div>
      {isAllowed ? (
        <Read of={read} what="users">
          {(value) =>
            value !== undefined && (
              <Users found={value} organism={organism} prefix={prefix} sorting={sorting} />
            )
          }
        </Read>
      ) : (
        <NeedsScope scope={neededForUsers(organism)} />
      )}
      {!isSorted && <CursorPages cursors={cursors} set={setCursors} next={found?.next_cursor} />}
      <SortLimit sorting={sorting} noun="users" order="e-mail" page={found} />
    </div>
  )
}

function joined(pages: Found, next: Found): Found {
  return { ...next, users: [...pages.users, ...next.users] }
}

function NamespaceChoice({ session, organism }: { session: SignedIn; organism: string | undefined }) {
  const organisms = useOrganisms(session).value ?? []
  return (
    <Choice
      name="Organization"
      value={organism ?? ''}
      options={{
        '': 'Default (no organization)',
        ...optionOf(organism),
        ...Object.fromEntries(organisms.map((id) => [id, id])),
      }}
      set={(chosen) => {
        location.hash = usersLink(chosen === '' ? undefined : chosen)
      }}
    />
  )
}

function NeedsScope({ scope }: { scope: Scope }) {
  return (
    <p class="notice">
      Managing these users needs a key with the scope <code>{scope}</code> that is not limited to agents.
      {scope === 'admin:*' &&
        ' The users of an organization need only admin:organisms: choose the organization above.'}
    </p>
  )
}

/** The option of the organism in the address, for keys that cannot list organisms. */
function optionOf(organism: string | undefined): Record<string, string> {
  return organism === undefined ? {} : { [organism]: organism }
}

/** Maps the error of a server without sign-in to `off`, and rethrows any other error. */
function offWhereDisabled(error: unknown): 'off' {
  if (error instanceof ServiceError && error.code === 'auth_disabled') return 'off'
  throw error
}

function Users(props: {
  found: Found | 'off'
  organism: string | undefined
  prefix: string
  sorting: Sorting<User>
}) {
  const { found, organism, prefix, sorting } = props
  if (found === 'off') {
    return (
      <Empty title="Sign-in is disabled on this server">
        Set <code>SERVICE_AUTH_ENABLED=true</code> and a license key to enable it.
      </Empty>
    )
  }
  const { users } = found
  if (users.length === 0) {
    return prefix === '' ? (
      <Empty title="No users yet">
        Users appear here after they register by <code>POST …/register</code>, a magic link or a provider.
      </Empty>
    ) : (
      <Empty title={`No users match “${prefix}”`}>The search compares the beginning of e-mails.</Empty>
    )
  }
  return (
    <CardTable
      name="Users"
      rows={users}
      keyOf={(user) => user.user_id}
      sorting={sortable(sorting, found)}
      long={['E-mail']}
      head={['E-mail', (user) => <UserLink user={user} organism={organism} />]}
      cells={{
        Verified: (user) => (user.verified ? 'Yes' : 'No'),
        'Last sign-in': ({ last_login_at_ms: ms }) => (ms === null ? 'Never' : <Time ms={ms} />),
        'Locked until': (user) => <LockedUntil user={user} />,
        Created: (user) => <Time ms={user.created_at_ms} />,
        ID: ({ user_id: id }) => <code title={id}>…{keyDigits(id)}</code>,
      }}
    />
  )
}

function UserLink({ user: { email }, organism }: { user: User; organism: string | undefined }) {
  return (
    <a class="whole" href={usersLink(organism, email)}>
      <Name text={email} />
    </a>
  )
}
