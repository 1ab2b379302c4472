import { useEffect, useState } from 'preact/hooks'
import type { PolicyClaims } from '../../../auth/row-policy.js'
import type { User } from '../../../client/index.js'
import { textType, useAddress } from '../../parts/address.js'
import { useLoaded } from '../../parts/load.js'
import { type Scope, type SignedIn, hasScope } from '../../parts/session.js'
import { claimsOf } from './claims.js'

const USERS_SHOWN = 10
const LIST_ID = 'try-users'

/** Chooses a user whose tokens can access the agent: of its organism, or without an organism. */
export function UserChoice(props: {
  session: SignedIn
  agent: string
  choose: (claims: PolicyClaims) => void
}) {
  const { session, agent, choose } = props
  const [typed, setTyped] = useAddress('user', textType)
  const [isUsed, setUsed] = useState(false)
  const organism = agent.includes('::') ? agent.slice(0, agent.indexOf('::')) : undefined
  const needed: Scope = organism === undefined ? 'admin:*' : 'admin:organisms'
  const isAllowed = session.who.kind !== 'open' && hasScope(session.who, needed)
  const { loaded } = useLoaded<User[]>(`${isUsed} ${typed}`, async (signal) => {
    if (!isUsed || !isAllowed) return []
    const { auth } = organism === undefined ? session.service : session.service.organism(organism)
    const { users } = await auth.users.list({
      prefix: typed === '' ? undefined : typed,
      limit: USERS_SHOWN,
      signal,
    })
    return users
  })
  const users = loaded.value ?? []
  const chosen = loaded.kind === 'loaded' ? users.find(({ email }) => email === typed) : undefined
  useEffect(() => {
    if (chosen !== undefined) choose(claimsOf(chosen))
  }, [chosen])
  return (
    <div class="field">
      <label for="try-user">User, by e-mail prefix</label>
      <input
        id="try-user"
        type="search"
        list={LIST_ID}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        disabled={!isAllowed}
        value={typed}
        aria-describedby="try-user-note"
        onFocus={() => setUsed(true)}
        onInput={(event) => setTyped(event.currentTarget.value.trim().toLowerCase())}
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
    if (!isAllowed) return `Choosing a user needs ${needed}. You can still enter claims.`
    if (loaded.kind === 'failed') return `${loaded.message}. You can still enter claims.`
    if (chosen !== undefined) return `The claims of a new token of ${chosen.email}.`
    if (loaded.kind === 'loading') return ''
    if (isUsed && users.length === 0) return typed === '' ? 'No users yet.' : 'No users match.'
    return organism === undefined ? 'A user without an organization.' : `A user of ${organism}.`
  }
}
