import { effect } from '@preact/signals'
import { readAccessibleAgents } from '../parts/accessible-agents.js'
import { identityText } from '../parts/labels.js'
import { watchServer } from '../parts/server-state.js'
import { hasScope, resume, session, sessionKey, type SignedIn, watchSession } from '../parts/session.js'
import { apiKey, consoleKey, exampleAgent } from './context.js'

/** The most agents of which the one that was written last is found. */
const AGENTS_READ = 1_000
const READ_MS = 10_000

/** Takes over the session of the console: its key, and an agent that exists for the examples. */
export async function takeOver(): Promise<void> {
  watchServer()
  watchSession()
  effect(() => {
    const { value } = session
    const key = value.kind === 'in' ? (sessionKey() ?? '') : ''
    // A key that the user has entered stays.
    if (apiKey.peek() === (consoleKey.peek()?.key ?? '')) apiKey.value = key
    consoleKey.value = value.kind === 'in' ? { key, identity: identityText(value.who) } : undefined
  })
  await resume(undefined)
  if (session.value.kind === 'in') await chooseExample(session.value)
}

/** Chooses the agent that was written last: its examples have results. */
async function chooseExample({ service, who }: SignedIn): Promise<void> {
  if (!hasScope(who, 'records:read')) return
  const signal = AbortSignal.timeout(READ_MS)
  const { statuses } = await readAccessibleAgents(service, who, { most: AGENTS_READ, signal })
  const [newest] = statuses
    .filter(({ agent_id: agent, record_count: count }) => !agent.startsWith('server::') && count > 0)
    .sort((one, other) => other.timestamp_ms - one.timestamp_ms)
  if (newest !== undefined) exampleAgent.value = { agent: newest.agent_id, hash: newest.chain_head }
}
