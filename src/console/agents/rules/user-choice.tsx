import { useLayoutEffect, useState } from 'preact/hooks'
import type { PolicyClaims } from '../../../auth/row-policy.js'
import type { ServiceClient, User } from '../../../client/index.js'
import { TextInput } from '../../parts/field.js'
import { useLoaded } from '../../parts/load.js'
import type { SignedIn } from '../../parts/session.js'
import { canReadUsers, namespaceOf, neededForUsers, readUserOfId } from '../../parts/users.js'
import { claimsOf } from './claims.js'

const USERS_SHOWN = 10
const LIST_ID = 'try-users'

async function usersWith(service: ServiceClient, prefix: string, signal: AbortSignal): Promise<User[]> {
  const wanted = { prefix: prefix === '' ? undefined : prefix, limit: USERS_SHOWN, signal }
  return (await service.auth.users.list(wanted)).users
}

/** Chooses a user whose tokens can access the agent: of its organism, or without an organism. */
export function UserChoice(props: {
  session: SignedIn
  agent: string
  /** The id of the chosen user; empty for none. */
  userId: string
  setUserId: (id: string) => void
  choose: (claims: PolicyClaims) => void
}) {
  const { session, agent, userId, setUserId, choose } = props
  const [typed, setTyped] = useState('')
  const [isUsed, setUsed] = useState(false)
  const organism = agent.includes('::') ? agent.slice(0, agent.indexOf('::')) : undefined
  const service = namespaceOf(session.service, organism)
  const isAllowed = canReadUsers(session.who, organism)
  const { loaded } = useLoaded<User[]>(`${isUsed} ${typed}`, async (signal) =>
    isUsed && isAllowed ? usersWith(service, typed, signal) : [],
  )
  const users = loaded.value ?? []
  const match = loaded.kind === 'loaded' ? users.find(({ email }) => email === typed) : undefined
  useLayoutEffect(() => {
    if (match !== undefined) setUserId(match.user_id)
  }, [match])
  const read = useLoaded<User | undefined>(userId, async (signal) =>
    userId === '' || !isAllowed ? undefined : readUserOfId(service, userId, signal),
  )
  const chosen = read.loaded.value
  useLayoutEffect(() => {
    if (chosen !== undefined) choose(claimsOf(chosen))
  }, [chosen])
  return (
    <div class="field">
      <label for="try-user">User, by e-mail prefix</label>
      <TextInput
        id="try-user"
        type="search"
        list={LIST_ID}
        autocapitalize="none"
        disabled={!isAllowed}
        value={chosen?.email ?? typed}
        aria-describedby="try-user-note"
        onFocus={() => setUsed(true)}
        set={(text) => {
          setTyped(text.trim().toLowerCase())
          setUserId('')
        }}
      />
      <datalist id={LIST_ID}>
        {users.map(({ email }) => (
          <option key={email} value={email} />
        ))}
      </datalist>
      <p id="try-user-note" class="muted" role="status">
        {noteText()}
      </p>
    </div>
  )

  function noteText(): string {
    if (!isAllowed) return `Choosing a user needs ${neededForUsers(organism)}. You can still enter claims.`
    if (loaded.kind === 'failed') return `${loaded.message}. You can still enter claims.`
    if (chosen !== undefined) return `The claims of a new token of ${chosen.email}.`
    if (read.loaded.kind === 'failed') return `${read.loaded.message}. You can still enter claims.`
    if (loaded.kind === 'loading' || read.loaded.kind === 'loading') return ''
    if (isUsed && users.length === 0) return typed === '' ? 'No users yet.' : 'No users match.'
    return organism === undefined ? 'A user without an organization.' : `A user of ${organism}.`
  }
}
