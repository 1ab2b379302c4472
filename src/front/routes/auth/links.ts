import { makeOneTimeToken } from '../../../auth/one-time-token.js'
import type { Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { LinkDraft, LinkPurpose } from '../../../protocol/auth-messages.js'
import type { Reader } from '../../../wire/validate.js'
import { json } from '../answers.js'
import type { AuthContext, AuthRequest } from '../auth-route.js'
import type { Answer } from '../route.js'
import { foreignRefusal } from '../this-machine.js'
import { readEmail, unexpectedAnswer } from './answers.js'

/** Makes a link that works once: what the shard keeps of it, and its token. */
export function linkDraft(context: AuthContext, purpose: LinkPurpose): { draft: LinkDraft; token: string } {
  const { token, hash } = makeOneTimeToken(context.random)
  const expiresAtMs = context.nowMs() + lifetimeSecs(context, purpose) * 1_000
  const { mailOn } = context.settings
  return { token, draft: { purpose, hash, expiresAtMs, ...(mailOn && { mailToken: token }) } }
}

function lifetimeSecs(context: AuthContext, purpose: LinkPurpose): number {
  if (purpose === 'magicLink') return context.settings.magicLinkExpirySecs
  return purpose === 'verifyEmail' ? limits.verifyLinkSecs : limits.resetLinkSecs
}

/**
 * Sends a link to the e-mail of the body, in the same way whether there is an account or not. While mail is off the
 * answer to the root key has the token; on a server for one machine every answer has it, but that of a password reset
 * (docs/OPERATIONS.md, Signing people in).
 */
export async function sendLink(
  request: AuthRequest,
  context: AuthContext,
  { purpose, body }: { purpose: LinkPurpose; body: Reader<{ email: string }> },
): Promise<Answer | Refusal> {
  const read = body.bytes(request.body)
  if ('code' in read) return read
  const address = readEmail(read.value.email)
  if ('code' in address) return address
  const { mailOn, answersLinks } = context.settings
  // Not every key with admin:*: one that is limited to agents could sign in as anyone.
  const isRoot = request.principal.id === 'root'
  const shown = !mailOn && (isRoot || (answersLinks && purpose !== 'passwordReset'))
  const foreign = shown && !isRoot ? foreignRefusal(request.headers) : undefined
  if (foreign !== undefined) return foreign
  const { draft, token } = linkDraft(context, purpose)
  const answer = await context.change(request, { kind: 'linkSend', email: address.email, link: draft })
  if ('code' in answer || answer.kind !== 'done') return unexpectedAnswer(answer)
  return json(200, { sent: mailOn, ...(shown && { token }) })
}
