import { apiKeys } from './tables/api-keys.js'
import { auth } from './tables/auth-table.js'
import { edges } from './tables/edges.js'
import { erasures } from './tables/erasures.js'
import { idempotency } from './tables/idempotency.js'
import { loggedHeads } from './tables/logged-heads.js'
import { mails } from './tables/mails.js'
import { reported } from './tables/meta.js'
import { mutations } from './tables/mutations.js'
import { organisms } from './tables/organisms.js'
import { pastProposals } from './tables/past-proposals.js'
import { proposals } from './tables/proposals.js'
import { publicKeys } from './tables/public-keys.js'
import { zoneChanges } from './tables/zone-changes.js'
import { stored } from './table-spec.js'

/** All specs, in the order in which a commit writes them. */
export const tableSpecs = [
  stored(mutations),
  stored(publicKeys),
  stored(erasures),
  stored(proposals),
  stored(pastProposals),
  stored(zoneChanges),
  stored(edges),
  stored(organisms),
  stored(loggedHeads),
  stored(apiKeys),
  stored(reported),
  stored(idempotency),
  stored(auth),
  stored(mails),
]
