import type { TestAnswer } from '../support/server/server.js'
import { agree } from './matching.js'
import type { Session } from './session.js'

/** The rows and the next cursor of a page. */
export interface Page {
  rows: unknown[]
  next: string | null
}

/** Reads all pages and checks that no page exceeds the limit. */
export async function pagesOf(
  limit: number | undefined,
  page: (query: Record<string, string>) => Promise<Page>,
): Promise<unknown[]> {
  const rows: unknown[] = []
  let cursor: string | null = null
  do {
    const answered: Page = await page({
      ...(limit !== undefined && { limit: String(limit) }),
      ...(cursor !== null && { cursor }),
    })
    if (limit !== undefined && answered.rows.length > limit)
      agree('Rows of a page', limit, answered.rows.length)
    rows.push(...answered.rows)
    if (answered.next !== null && answered.next === cursor)
      agree('The cursor of the next page', 'another', cursor)
    cursor = answered.next
  } while (cursor !== null)
  return rows
}

/**
 * Whether a read of an agent must be refused, because the key does not reach it or it does not exist; checks
 * the answer.
 */
export function refusedFor(
  session: Session,
  { agent, by }: { agent: string; by: string },
  { route, answer }: { route: string; answer: TestAnswer },
): boolean {
  const expected = readRefusal(session, agent, by)
  if (expected !== undefined) agree(`${route} by ${by}`, expected, answer.body?.code ?? answer.status)
  return expected !== undefined
}

/** The code with which every read of an agent is refused; undefined if it is allowed. */
export function readRefusal(session: Session, agent: string, by: string): string | undefined {
  if (!agent.startsWith(session.actor(by).reach)) return 'forbidden'
  return session.world.chains.has(agent) ? undefined : 'agent_not_found'
}
