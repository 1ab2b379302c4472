import { Facts } from '../parts/facts.js'
import { Time } from '../parts/texts.js'
import type { Scope, SignedIn } from '../parts/session.js'
import { ServerLine } from './sign-in.js'
import { scopeMeanings, whoText } from '../parts/words.js'

/** Who the key is, and what it may do. */
export function SignedInPage({ session }: { session: SignedIn }) {
  const { who } = session
  return (
    <div class="page narrow">
      <h1>{whoText(who)}</h1>
      <Facts
        facts={{
          'Key id': who.kind === 'api_key' ? <code>{who.principal}</code> : undefined,
          Expires: who.expires_at_ms === null ? undefined : <Time ms={who.expires_at_ms} />,
          Agents: who.agents.length === 0 ? 'All' : who.agents.map((name) => <code key={name}>{name} </code>),
          Server: <ServerLine />,
        }}
      />
      <h2>What it may do</h2>
      <WhatItMayDo session={session} />
    </div>
  )
}

function WhatItMayDo({ session: { who } }: { session: SignedIn }) {
  if (who.kind === 'user') return <p>What the rules of each agent allow this user.</p>
  const all = who.kind === 'open' || who.scopes.includes('admin:*')
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
