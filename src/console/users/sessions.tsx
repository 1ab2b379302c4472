import { useState } from 'preact/hooks'
import type { ServiceClient, User, UserSessions } from '../../client/index.js'
import { CardCell, CardRow, CardTable } from '../parts/card-table.js'
import { Dialog } from '../parts/dialog.js'
import { explain } from '../parts/explain.js'
import { counted, keyDigits } from '../parts/format.js'
import { useLoaded } from '../parts/load.js'
import { Failure, Loading, Time } from '../parts/texts.js'

interface SessionsProps {
  service: ServiceClient
  user: User
  /** Reads the user again, and with it what was recorded. */
  reload: () => void
}

/** Where the user is signed in, and the end of it. */
export function Sessions({ service, user, reload }: SessionsProps) {
  const [isAsking, setAsking] = useState(false)
  const read = useLoaded<UserSessions>(user.user_id, (signal) =>
    service.auth.users.sessions(user.email, { signal }),
  )
  const { loaded } = read
  const sessions = loaded.value?.sessions ?? []
  return (
    <section class="user-sessions">
      <h2>Sessions</h2>
      {loaded.kind === 'failed' && <Failure message={loaded.message} retry={read.reload} />}
      {loaded.kind === 'loading' && loaded.value === undefined && <Loading what="the sessions" />}
      {loaded.value !== undefined && sessions.length === 0 && (
        <p class="muted">The user is not signed in anywhere.</p>
      )}
      {sessions.length > 0 && (
        <>
          <SessionTable sessions={sessions} />
          <button type="button" onClick={() => setAsking(true)}>
            End all sessions…
          </button>
        </>
      )}
      {isAsking && (
        <EndSessions
          service={service}
          user={user}
          count={sessions.length}
          close={() => setAsking(false)}
          ended={() => {
            setAsking(false)
            read.reload()
            reload()
          }}
        />
      )}
    </section>
  )
}

function SessionTable({ sessions }: Pick<UserSessions, 'sessions'>) {
  return (
    <CardTable name="Sessions" columns={['Session', 'Began', 'Last used', 'Signed in by']}>
      {sessions.map(({ sid, created_at_ms: createdAtMs, last_used_at_ms: lastUsedAtMs, amr }) => (
        <CardRow key={sid} head={<code title={sid}>…{keyDigits(sid)}</code>}>
          <CardCell name="Began">
            <Time ms={createdAtMs} />
          </CardCell>
          <CardCell name="Last used">
            <Time ms={lastUsedAtMs} />
          </CardCell>
          <CardCell name="Signed in by">{amr.join(', ')}</CardCell>
        </CardRow>
      ))}
    </CardTable>
  )
}

function EndSessions(props: {
  service: ServiceClient
  user: User
  count: number
  close: () => void
  ended: () => void
}) {
  const { service, user, count, close, ended } = props
  const { busy, problem, run } = useRun()
  return (
    <Dialog title="End all sessions" class="dialog" close={close}>
      <h2>End {counted(count, 'session')}?</h2>
      <p>
        <strong>Ends at once:</strong> every session of {user.email} and its tokens, wherever they are.
      </p>
      <p>
        <strong>Stays:</strong> the user, the password, the passkeys and all records. The user can sign in
        again. A signed record says who ended the sessions.
      </p>
      {problem !== undefined && <Failure message={problem} />}
      <div class="buttons">
        <button
          type="button"
          class="danger"
          disabled={busy}
          onClick={() => void run(() => service.auth.users.endSessions(user.email), ended)}
        >
          End the sessions
        </button>
        <button type="button" onClick={close}>
          Cancel
        </button>
      </div>
    </Dialog>
  )
}

/** Lets a locked user sign in at once. */
export function Unlock({ service, user, reload }: SessionsProps) {
  const { busy, problem, run } = useRun()
  if (user.locked_until_ms === null) return null
  return (
    <div class="notice unlock">
      <p>
        Sign-ins by password are refused until <Time ms={user.locked_until_ms} />, after failed ones.
        Unlocking forgets the failures; their records stay.
      </p>
      {problem !== undefined && <Failure message={problem} />}
      <button
        type="button"
        disabled={busy}
        onClick={() => void run(() => service.auth.users.unlock(user.email), reload)}
      >
        Unlock
      </button>
    </div>
  )
}

/** Runs one change at a time, and says why one failed. */
function useRun() {
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const run = async (change: () => Promise<unknown>, then: () => void): Promise<void> => {
    setBusy(true)
    setProblem(undefined)
    try {
      await change()
      then()
    } catch (error) {
      setProblem(explain(error))
    }
    setBusy(false)
  }
  return { busy, problem, run }
}
