import { useState } from 'preact/hooks'
import type { ServiceClient, User } from '../../client/index.js'
import { auditAgentOf } from '../parts/audit-events.js'
import { Confirm } from '../parts/confirm.js'
import { countText } from '../parts/format.js'
import { Read, useLoaded } from '../parts/load.js'
import { Button, Empty, Key, LineFacts, Name, Time } from '../parts/texts.js'
import { type Route, usersLink } from '../route.js'
import type { SignedIn } from '../parts/session.js'
import { Metadata } from './metadata.js'
import { Sessions, Unlock } from './sessions.js'
import { namespaceOf, readUser, useDefaultAgent } from '../parts/users.js'
import { UserTrail } from './user-trail.js'

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
