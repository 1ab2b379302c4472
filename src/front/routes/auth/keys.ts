import { refuse } from '../../../base/errors.js'
import { SigningKeyRotated } from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthRouteEntry } from '../auth-route.js'
import { unexpectedAnswer } from './answers.js'

/**
 * POST /v1/auth/keys/rotate: starts to sign with the next key; tokens of the previous key stay valid until
 * they expire.
 */
const rotate: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/keys/rotate',
  caller: 'admin',
  endsAccess: true,
  docs: { summary: 'Rotate the key that signs tokens', answers: { 200: SigningKeyRotated } },
  async handle(request, context) {
    const answer = await context.change(request, { kind: 'keyRotate' })
    if ('code' in answer || answer.kind !== 'keyEpochs') return unexpectedAnswer(answer)
    const [current, next] = await context.tokens.publicKeys(request.namespace)
    const retired = answer.retired.at(-1)
    if (current === undefined || next === undefined || retired === undefined) {
      return refuse('internal_error', 'The namespace has no signing key or no next one')
    }
    return json(200, { kid: current.kid, next_kid: next.kid, retired_until_ms: retired.untilMs })
  },
}

export const keyRoutes = [rotate]
