import { useState } from 'preact/hooks'
import type { ServiceClient, User } from '../../client/index.js'
import { auditAgentOf } from '../parts/audit-events.js'
import { Dialog } from '../parts/dialog.js'
import { explain } from '../parts/explain.js'
import { countText, keyDigits } from '../parts/format.js'
import { useLoaded } from '../parts/load.js'
import { CopyButton, Empty, Failure, Loading, Name, Time } from '../parts/texts.js'
import { TypedConfirmation } from '../parts/typed.js'
import { usersLink } from '../route.js'
import { useDefaultAgent } from '../parts/namespaces.js'
import type { SignedIn } from '../parts/session.js'
import { LockedUntil } from './locked-until.js'
import { Metadata } from './metadata.js'
import { namespaceOf, readUser } from './read-users.js'
import { Sessions, Unlock } from './sessions.js'
import { UserTrail } from './user-trail.js'

/** One user: what is stored, and everything that was recorded of it. */
export function UserPage(props: { session: SignedIn; organism: string | undefined; email: string }) {
  const { session, organism, email } = props
  const service = namespaceOf(session.service, organism)
  const { loaded, reload } = useLoaded<User | undefined>(email, (signal) => readUser(service, email, signal))
  // Each change made here leaves a record.
  const [changes, setChanges] = useState(0)
  const changed = (): void => {
    setChanges(changes + 1)
    reload()
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
      {loaded.kind === 'failed' && <Failure message={loaded.message} retry={reload} />}
      {loaded.kind === 'loading' && loaded.value === undefined && <Loading what="the user" />}
      {loaded.kind === 'loaded' && loaded.value === undefined && (
        <Empty title="There is no user with this e-mail">
          It may have been deleted. <a href={list}>Look for another</a>
        </Empty>
      )}
      {loaded.value !== undefined && (
        <>
          <Facts user={loaded.value} />
          <Unlock service={service} user={loaded.value} reload={changed} />
          <Metadata service={service} user={loaded.value} reload={changed} />
          <Sessions service={service} user={loaded.value} reload={changed} />
          {agent !== undefined && (
            <UserTrail service={session.service} agent={agent} user={loaded.value} turn={changes} />
          )}
          <DeleteUser service={service} user={loaded.value} list={list} />
        </>
      )}
    </div>
  )
}

function Facts({ user }: { user: User }) {
  return (
    <dl class="line-facts">
      <div>
        <dt>E-mail verified</dt>
        <dd>{user.verified ? 'yes' : 'no'}</dd>
      </div>
      <div>
        <dt>Last sign-in</dt>
        <dd>{user.last_login_at_ms === null ? 'never' : <Time ms={user.last_login_at_ms} />}</dd>
      </div>
      <div>
        <dt>Locked until</dt>
        <dd>
          <LockedUntil user={user} />
        </dd>
      </div>
      <div>
        <dt>Passkeys</dt>
        <dd>{user.passkeys === 0 ? 'none' : countText(user.passkeys)}</dd>
      </div>
      <div>
        <dt>Made</dt>
        <dd>
          <Time ms={user.created_at_ms} />
        </dd>
      </div>
      <div>
        <dt>Id</dt>
        <dd>
          <span class="hash">
            <code title={user.user_id}>…{keyDigits(user.user_id)}</code>
            <CopyButton text={user.user_id} name="the id of the user" />
          </span>
        </dd>
      </div>
    </dl>
  )
}

function DeleteUser({ service, user, list }: { service: ServiceClient; user: User; list: string }) {
  const [isAsking, setAsking] = useState(false)
  return (
    <section class="delete-user">
      <h2>Delete this user</h2>
      <p class="muted">Says first what ends and what stays.</p>
      <button type="button" onClick={() => setAsking(true)}>
        Delete…
      </button>
      {isAsking && <Deleting service={service} user={user} list={list} close={() => setAsking(false)} />}
    </section>
  )
}

function Deleting(props: { service: ServiceClient; user: User; list: string; close: () => void }) {
  const { service, user, list, close } = props
  const [typed, setTyped] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const remove = async (): Promise<void> => {
    setBusy(true)
    try {
      await service.auth.users.delete(user.email)
      location.hash = list
    } catch (error) {
      setProblem(explain(error))
      setBusy(false)
    }
  }
  return (
    <Dialog title="Delete this user" class="dialog" close={close}>
      <h2>
        Delete <Name text={user.email} />?
      </h2>
      <p>
        <strong>Ends at once:</strong> every session and token, the password, the passkeys and both metadata
        objects. This cannot be undone.
      </p>
      <p>
        <strong>Stays:</strong> the signed audit records, which name the user by id and by an HMAC of the
        e-mail, never by the e-mail; records that the user wrote; backups. The same e-mail can register again,
        as another user.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (typed === user.email) void remove()
        }}
      >
        <TypedConfirmation wanted={user.email} what="the e-mail" typed={typed} set={setTyped} />
        {problem !== undefined && <Failure message={problem} />}
        <div class="buttons">
          <button type="submit" class="danger" disabled={typed !== user.email || isBusy}>
            Delete the user
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}
