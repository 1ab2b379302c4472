import type { AuthRoute } from '../auth-route.js'
import { jwksRoutes } from './jwks.js'
import { keyRoutes } from './keys.js'
import { loginRoutes } from './login.js'
import { logoutRoutes } from './logout.js'
import { magicLinkRoutes } from './magic-link.js'
import { meRoutes } from './me.js'
import { passkeyRoutes } from './passkeys.js'
import { oauthRoutes } from './oauth.js'
import { passwordRoutes } from './password.js'
import { refreshRoutes } from './refresh.js'
import { registerRoutes } from './register.js'
import { revokeRoutes } from './revoke.js'
import { sessionRoutes } from './sessions.js'
import { statusRoutes } from './status.js'
import { userRoutes } from './users.js'
import { verifyEmailRoutes } from './verify-email.js'

/** Every route of the auth add-on, for the root namespace. */
export const authRoutes: readonly AuthRoute[] = [
  ...statusRoutes,
  ...registerRoutes,
  ...loginRoutes,
  ...refreshRoutes,
  ...logoutRoutes,
  ...revokeRoutes,
  ...meRoutes,
  ...sessionRoutes,
  ...magicLinkRoutes,
  ...verifyEmailRoutes,
  ...passwordRoutes,
  ...passkeyRoutes,
  ...oauthRoutes,
  ...userRoutes,
  ...jwksRoutes,
  ...keyRoutes,
]
