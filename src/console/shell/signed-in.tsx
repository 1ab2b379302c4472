import { Facts } from '../parts/facts.js'
import { Time } from '../parts/texts.js'
import { Principal, useKeyNames } from '../parts/principal.js'
import type { Scope, SignedIn } from '../parts/session.js'
import { hiddenScreens } from './nav-items.js'
import { ServerLine } from './sign-in.js'
import { scopeMeanings, identityText } from '../parts/labels.js'

/** The signed-in identity and its permissions. */
export function SignedInPage({ session }: { session: SignedIn }) {
  const { who } = session
  const hidden = hiddenScreens(who)
  const names = useKeyNames(session)
  return (
    <div class="page narrow">
      <h1>{identityText(who)}</h1>
      <Facts
        facts={{
          'Key ID': who.kind === 'api_key' ? <code>{who.principal}</code> : undefined,
          'Created by':
            who.made_by === null ? undefined : <Principal id={who.made_by} names={names} who={who} />,
          Expires: who.expires_at_ms === null ? undefined : <Time ms={who.expires_at_ms} />,
          Agents: who.agents.length === 0 ? 'All' : who.agents.map((name) => <code key={name}>{name} </code>),
          Server: <ServerLine />,
        }}
      />
      <h2>Permissions</h2>
      <Permissions session={session} />
      {hidden !== undefined && <p class="muted">{hidden.text}.</p>}
    </div>
  )
}

function Permissions({ session: { who } }: { session: SignedIn }) {
  if (who.kind === 'user') return <p>The rules of each agent define what this user can do.</p>
  const all = who.scopes.includes('admin:*')
  const scopes = all ? (['admin:*'] satisfies Scope[]) : who.scopes
  return (
    <ul class="plain">
      {scopes.map((scope) => (
        <li key={scope}>
          {scopeMeanings[scope]} <code class="muted">{scope}</code>
        </li>
      ))}
    </ul>
  )
}
