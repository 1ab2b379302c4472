import { useLoaded } from '../parts/load.js'
import { Time } from '../parts/texts.js'
import { type SignedIn, may, type Scope } from './session.js'
import { ServerLine } from './sign-in.js'
import { scopeMeanings, whoText } from './words.js'

/** Who the key is, what it may do, and where to go on. */
export function SignedInPage({ session }: { session: SignedIn }) {
  const { who } = session
  return (
    <div class="page narrow">
      <h1>{whoText(who)}</h1>
      <dl class="facts">
        {who.kind === 'api_key' && (
          <>
            <dt>Key id</dt>
            <dd>
              <code>{who.principal}</code>
            </dd>
          </>
        )}
        {who.expires_at_ms !== null && (
          <>
            <dt>Expires</dt>
            <dd>
              <Time ms={who.expires_at_ms} />
            </dd>
          </>
        )}
        <dt>Agents</dt>
        <dd>{who.agents.length === 0 ? 'All' : who.agents.map((name) => <code key={name}>{name} </code>)}</dd>
        <dt>Server</dt>
        <dd>
          <ServerLine />
        </dd>
      </dl>
      <h2>What it may do</h2>
      <WhatItMayDo session={session} />
      {may(who, 'records:read') && <WhereToGo session={session} />}
    </div>
  )
}

/** To the agents; where nothing was written yet, to a first record. */
function WhereToGo({ session: { service, who } }: { session: SignedIn }) {
  const { loaded } = useLoaded('first', async (signal) => {
    if (!may(who, 'records:write')) return false
    // The default agent is always there.
    const { statuses, next_cursor: next } = await service.agentStatuses({ limit: 2, signal })
    return next === null && statuses.every(({ record_count: count }) => count === 0)
  })
  const isNew = loaded.value === true
  return (
    <p class="buttons">
      {isNew && (
        <a class="button primary" href="#/start">
          Write a first record
        </a>
      )}
      <a class={isNew ? 'button' : 'button primary'} href="#/agents">
        Look at the agents
      </a>
    </p>
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
