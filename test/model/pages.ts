import type { TestAnswer } from '../support/server/server.js'
import { agree } from './matching.js'
import type { Session } from './session.js'

/** One page as it was answered. */
export interface Page {
  rows: unknown[]
  next: string | null
}

/** All rows, page after page; no page holds more than it may. */
export async function pagesOf(
  limit: number | undefined,
  page: (query: Record<string, string>) => Promise<Page>,
): Promise<unknown[]> {
  const rows: unknown[] = []
  let cursor: string | null = null
  do {
    const asked: Page = await page({
      ...(limit !== undefined && { limit: String(limit) }),
      ...(cursor !== null && { cursor }),
    })
    if (limit !== undefined && asked.rows.length > limit) agree('Rows of a page', limit, asked.rows.length)
    rows.push(...asked.rows)
    if (asked.next !== null && asked.next === cursor) agree('The cursor of the next page', 'another', cursor)
    cursor = asked.next
  } while (cursor !== null)
  return rows
}

/** Whether a read of an agent is refused, as it must be: for a key that does not reach it, or where it is not there. */
export function refusedFor(
  session: Session,
  { agent, by }: { agent: string; by: string },
  { route, answer }: { route: string; answer: TestAnswer },
): boolean {
  const expected = readRefusal(session, agent, by)
  if (expected !== undefined) agree(`${route} by ${by}`, expected, answer.body?.code ?? answer.status)
  return expected !== undefined
}

/** The code that any read of an agent is refused with. */
export function readRefusal(session: Session, agent: string, by: string): string | undefined {
  if (!agent.startsWith(session.actor(by).reach)) return 'forbidden'
  return session.world.chains.has(agent) ? undefined : 'agent_not_found'
}
