import { useState } from 'preact/hooks'
import type { ServiceClient, User, UserSessions } from '../../client/index.js'
import { CardTable } from '../parts/card-table.js'
import { Confirm } from '../parts/confirm.js'
import { Problem } from '../parts/field.js'
import { counted, keyDigits } from '../parts/format.js'
import { Read, useChange, useLoaded } from '../parts/load.js'
import { Button, Time } from '../parts/texts.js'

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
