// The entry point of the package export `strandfast/client`.
export { ServiceClient } from './service-client.js'
export type {
  AgentStatusesOptions,
  CreateAgentOptions,
  ExportOptions,
  ListAgentsOptions,
  ServiceClientOptions,
} from './service-client.js'
export type { ApiKeyListOptions, ApiKeysClient } from './api-keys.js'
export type { AuthClient } from './auth.js'
export type { OnSessionChange } from './auth-session.js'
export type { NewMember, OrganismsClient } from './organisms.js'
export { NetworkError, NotFoundError, ServiceError } from './errors.js'
export type { FailureDetails } from './errors.js'
export { verifyAsOf } from './as-of-check.js'
export type { MomentTrust, VerifiedMoment } from './as-of-check.js'
export type { AsOfOptions, CollectionHandle, QueryAllOptions } from './collection.js'
export type { EdgeOptions, EdgePageOptions, GraphClient, TraverseOptions } from './graph.js'
export type { ProposalListOptions, ProposalsClient } from './proposals.js'
export type { OauthClient, OauthOptions, OauthProvider, OauthSignedIn } from './oauth.js'
export type { PasskeyClient } from './passkeys.js'
export { verifyConsistency, verifyLoggedHead } from './server-log.js'
export type { ConsistencyKeys, Grown, ProofFault } from '../proof/growth.js'
export type { LogTrust, VerifiedHead } from '../proof/logged-head.js'
export type { ConsistencyOptions, LogClient, LogProofOptions } from './server-log.js'
export type { IngestManyOptions, RecordSource } from './ingest.js'
export type {
  OnEvent,
  SubscribeAgentOptions,
  SubscribeGlobalOptions,
  SubscribeOptions,
  Subscription,
  SubscriptionCallbacks,
  SubscriptionState,
} from './subscription.js'
export { verifyExport } from './verify-export.js'
export type { Unexplained } from '../proof/export-check.js'
export type { ExportFault } from '../proof/export-check.js'
export type { KeptStrand } from '../proof/kept-checkpoint.js'
export type { VerifiedExport, VerifyOptions, VerifyResult } from './verify-export.js'
export type { ExportSource } from './text-lines.js'
export type { Timing } from './timing.js'
export type * from './auth-types.js'
export type * from './types.js'
