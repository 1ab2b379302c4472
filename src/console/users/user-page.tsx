import { useState } from 'preact/hooks'
import type { ServiceClient, User, UserSessions } from '../../client/index.js'
import { auditAgentOf } from '../parts/audit-events.js'
import { Confirm } from '../parts/confirm.js'
import { counted, countText, keyDigits } from '../parts/format.js'
import { Read, useChange, useLoaded } from '../parts/load.js'
import { Button, Empty, Key, LineFacts, Name, Time } from '../parts/texts.js'
import { type Route, usersLink } from '../route.js'
import type { SignedIn } from '../parts/session.js'
import { namespaceOf, readUser, useDefaultAgent } from '../parts/users.js'
import { UserTrail } from './user-trail.js'
import { CardTable } from '../parts/card-table.js'
import { Form, Problem } from '../parts/field.js'
import { explain } from '../parts/explain.js'
import { objectOfJson } from '../parts/json.js'

/** One user: the stored data, the sessions and the audit trail. */
export function UserPage(props: { session: SignedIn; organism: string | undefined; email: string }) {
  const { session, organism, email } = props
  const service = namespaceOf(session.service, organism)
  const read = useLoaded<User | undefined>(email, (signal) => readUser(service, email, signal))
  // Each change on this page adds an audit record.
  const [changes, setChanges] = useState(0)
  const changed = (): void => {
    setChanges(changes + 1)
    read.reload()
  }
  const defaultAgent = useDefaultAgent(session)
  const agent = organism === undefined ? defaultAgent : auditAgentOf(organism)
  const list = usersLink(organism)
  return (
    <div class="page">
      <p class="trail">
        <a href={list}>{organism === undefined ? 'Users' : `Users of ${organism}`}</a>{' '}
        <span aria-hidden="true">/</span>
      </p>
      <h1 class="agent-name">
        <Name text={email} />
      </h1>
      <Read of={read} what="the user">
        {(user) =>
          user === undefined ? (
            <Empty title={`User “${email}” not found`}>
              The user may have been deleted. <a href={list}>Back to the list</a>
            </Empty>
          ) : (
            <>
              <UserFacts user={user} />
              <Unlock service={service} user={user} reload={changed} />
              <Metadata service={service} user={user} reload={changed} />
              <Sessions service={service} user={user} reload={changed} />
              {agent !== undefined && (
                <UserTrail session={session} agent={agent} user={user} revision={changes} />
              )}
              <DeleteUser service={service} user={user} list={list} />
            </>
          )
        }
      </Read>
    </div>
  )
}

function UserFacts({ user }: { user: User }) {
  const { user_id: id, last_login_at_ms: lastLoginAtMs } = user
  return (
    <LineFacts
      facts={{
        'E-mail verified': user.verified ? 'Yes' : 'No',
        'Last sign-in': lastLoginAtMs === null ? 'Never' : <Time ms={lastLoginAtMs} />,
        'Locked until': <LockedUntil user={user} />,
        Passkeys: user.passkeys === 0 ? 'None' : countText(user.passkeys),
        Created: <Time ms={user.created_at_ms} />,
        ID: <Key hex={id} name="the ID of the user" />,
      }}
    />
  )
}

function DeleteUser({ service, user, list }: { service: ServiceClient; user: User; list: string }) {
  const [isConfirming, setConfirming] = useState(false)
  return (
    <section class="delete-user">
      <h2>Delete this user</h2>
      <p class="muted">A dialog lists what ends and what stays before you confirm.</p>
      <Button text="Delete…" onClick={() => setConfirming(true)} />
      {isConfirming && (
        <ConfirmDeletion service={service} user={user} list={list} close={() => setConfirming(false)} />
      )}
    </section>
  )
}

function ConfirmDeletion(props: { service: ServiceClient; user: User; list: string; close: () => void }) {
  const { service, user, list, close } = props
  const heading = (
    <>
      Delete <Name text={user.email} />?
    </>
  )
  return (
    <Confirm
      change={{
        title: 'Delete this user',
        heading,
        button: 'Delete user',
        confirm: { wanted: user.email, what: 'the e-mail' },
        apply: () => service.auth.users.delete(user.email),
        close(isDeleted) {
          if (isDeleted) location.hash = list
          else close()
        },
      }}
    >
      <p>
        <strong>Ends immediately:</strong> every session and token, the password, the passkeys and both
        metadata objects. This cannot be undone.
      </p>
      <p>
        <strong>Stays:</strong> the signed audit records, which contain the ID and an HMAC of the e-mail, but
        never the e-mail; records that the user wrote; backups. The same e-mail can register again as another
        user.
      </p>
    </Confirm>
  )
}

export type UsersRoute = Extract<Route, { screen: 'users' }>

/** The time until which password sign-in is locked. */
export function LockedUntil({ user: { locked_until_ms: lockedUntilMs } }: { user: User }) {
  if (lockedUntilMs === null) return <span class="muted">Not locked</span>
  return (
    <span class="badge failure">
      <Time ms={lockedUntilMs} />
    </span>
  )
}

interface SessionsProps {
  service: ServiceClient
  user: User
  /** Reads the user and the audit records again. */
  reload: () => void
}

/** The sessions of a user, and a button that ends them. */
export function Sessions({ service, user, reload }: SessionsProps) {
  const [isConfirming, setConfirming] = useState(false)
  const read = useLoaded<UserSessions>(user.user_id, (signal) =>
    service.auth.users.sessions(user.email, { signal }),
  )
  return (
    <section class="user-sessions">
      <h2>Sessions</h2>
      <Read of={read} what="the sessions">
        {({ sessions }) =>
          sessions.length === 0 ? (
            <p class="muted">The user is not signed in anywhere.</p>
          ) : (
            <>
              <SessionTable sessions={sessions} />
              <Button text="End all sessions…" onClick={() => setConfirming(true)} />
              {isConfirming && (
                <EndSessions
                  service={service}
                  user={user}
                  count={sessions.length}
                  close={(isEnded) => {
                    setConfirming(false)
                    if (!isEnded) return
                    read.reload()
                    reload()
                  }}
                />
              )}
            </>
          )
        }
      </Read>
    </section>
  )
}

/** The ways to sign in, by the first of their authentication methods (RFC 8176). */
const methods = new Map([
  ['pwd', 'Password'],
  ['otp', 'Magic link'],
  ['fed', 'Provider'],
  ['pop', 'Passkey'],
])

function SessionTable({ sessions }: Pick<UserSessions, 'sessions'>) {
  return (
    <CardTable
      name="Sessions"
      rows={sessions}
      keyOf={({ sid }) => sid}
      head={['Session', ({ sid }) => <code title={sid}>…{keyDigits(sid)}</code>]}
      cells={{
        Created: ({ created_at_ms: ms }) => <Time ms={ms} />,
        'Last used': ({ last_used_at_ms: ms }) => <Time ms={ms} />,
        'Sign-in method': ({ amr }) => methods.get(amr[0] ?? '') ?? amr.join(', '),
      }}
    />
  )
}

function EndSessions(props: {
  service: ServiceClient
  user: User
  count: number
  close: (isEnded: boolean) => void
}) {
  const { service, user, count, close } = props
  return (
    <Confirm
      change={{
        title: 'End all sessions',
        heading: `End ${counted(count, 'session')}?`,
        button: 'End sessions',
        isDanger: true,
        apply: () => service.auth.users.endSessions(user.email),
        close,
      }}
    >
      <p>
        <strong>Ends immediately:</strong> every session of {user.email} on every device, with its tokens.
      </p>
      <p>
        <strong>Stays:</strong> the user, the password, the passkeys and all records. The user can sign in
        again. A signed record names who ended the sessions.
      </p>
    </Confirm>
  )
}

export function Unlock({ service, user, reload }: SessionsProps) {
  const { isBusy, problem, run } = useChange()
  const unlock = async (): Promise<void> => {
    await service.auth.users.unlock(user.email)
    reload()
  }
  if (user.locked_until_ms === null) return null
  return (
    <div class="notice unlock">
      <p>
        Password sign-in is locked until <Time ms={user.locked_until_ms} />, after failed attempts. Unlocking
        resets the count of failures; their records stay.
      </p>
      <Problem text={problem} />
      <Button text="Unlock" disabled={isBusy} onClick={() => void run(unlock)} />
    </div>
  )
}

/** The server's default limit for both objects together (SERVICE_AUTH_METADATA_MAX_BYTES). */
const BYTES_MAX = 4_096

/** The two metadata objects in the user's tokens: administrators edit the first one, the user the second. */
export function Metadata(props: { service: ServiceClient; user: User; reload: () => void }) {
  const { service, user, reload } = props
  return (
    <section class="metadata">
      <h2>Metadata</h2>
      <p class="muted">
        Both objects can be read in every token of this user. A change appears in tokens issued after it.
      </p>
      <div class="metadata-pair">
        <AppMetadata service={service} user={user} reload={reload} />
        <div>
          <h3>user_metadata</h3>
          <pre class="raw" tabIndex={0}>
            {JSON.stringify(user.user_metadata, null, 2)}
          </pre>
          <p class="muted">Only the user can change this object.</p>
        </div>
      </div>
    </section>
  )
}

type SavingState = { kind: 'idle' | 'busy' | 'saved' } | { kind: 'failed'; message: string }

function AppMetadata({ service, user, reload }: { service: ServiceClient; user: User; reload: () => void }) {
  const [text, setText] = useState(() => JSON.stringify(user.app_metadata, null, 2))
  const [clears, setClears] = useState(false)
  const [state, setState] = useState<SavingState>({ kind: 'idle' })
  const value = objectOfJson(text)
  const other = clears ? {} : user.user_metadata
  const left = value === undefined ? undefined : BYTES_MAX - bytesOf(value) - bytesOf(other)
  const save = async (): Promise<void> => {
    if (value === undefined) return
    setState({ kind: 'busy' })
    try {
      await service.auth.users.setAppMetadata(user.email, value, { clearUserMetadata: clears })
      setState({ kind: 'saved' })
      reload()
    } catch (error) {
      setState({ kind: 'failed', message: explain(error) })
    }
  }
  return (
    <Form submit={() => save()}>
      <h3>
        <label for="app-metadata">app_metadata</label>
      </h3>
      <textarea
        id="app-metadata"
        rows={8}
        spellcheck={false}
        value={text}
        aria-describedby="app-metadata-left"
        aria-invalid={value === undefined}
        onInput={(event) => {
          setText(event.currentTarget.value)
          setState({ kind: 'idle' })
        }}
      />
      <p id="app-metadata-left" class={left === undefined || left < 0 ? 'problem' : 'muted'}>
        {leftText(left)}
      </p>
      <p>
        <label>
          <input
            type="checkbox"
            checked={clears}
            onChange={(event) => setClears(event.currentTarget.checked)}
          />{' '}
          Also clear user_metadata
        </label>
      </p>
      <div class="buttons">
        <button type="submit" class="primary" disabled={value === undefined || state.kind === 'busy'}>
          Replace app_metadata
        </button>
        <span role="status" class={state.kind === 'failed' ? 'problem' : 'muted'}>
          {state.kind === 'saved' ? 'Saved' : state.kind === 'failed' ? state.message : ''}
        </span>
      </div>
    </Form>
  )
}

function leftText(left: number | undefined): string {
  if (left === undefined) return 'Expected a JSON object'
  const max = countText(BYTES_MAX)
  return left < 0
    ? `${countText(-left)} bytes over the limit of ${max} for both objects`
    : `${countText(left)} of ${max} bytes left for both objects`
}

/** The size of the canonical form (RFC 8785), which differs only in the order of members. */
function bytesOf(value: object): number {
  return new TextEncoder().encode(JSON.stringify(value)).length
}
