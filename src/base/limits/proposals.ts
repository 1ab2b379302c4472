/** Limits of proposals and of the key lineages that decide whose approvals count. */
export const proposalLimits = {
  /** Days after which a proposal without a decision expires (docs/adr/0014-proposals.md). */
  proposalDays: 7,
  /** Days for which a closed proposal keeps its row; after that, it is read from the strand. */
  proposalRowDays: 30,
  /** Rows of proposals that one search for old ones examines. */
  proposalAgingRows: 256,
  /** Milliseconds between two such searches through all rows. */
  proposalAgingMs: 3_600_000,
  /** The number of rows as which a proposal that is read from the strand counts in a page. */
  proposalOfStrandRows: 8,
  /** Open proposals of one agent: a change of its zone closes them all in one commit. */
  proposalsOpenMax: 1_000,
  /** Open proposals other than erasures, so that keys can always propose to erase. */
  proposalsNotErasingMax: 900,
  /** Open proposals of one key lineage. */
  proposalsOfLineageMax: 500,
  /** Open proposals of all users together, so that keys can still propose. */
  proposalsOfUsersMax: 400,
  proposalsOfUserMax: 32,
  /** Key lineages that an account remembers: those that created it or could sign in to it. */
  reachingLineagesMax: 16,
  /** Milliseconds between searches for proposals that have expired. */
  proposalSweepMs: 1_000,
  /** Rows that a shard sets aside because their handling failed; a sweep that meets a further one fails. */
  setAsideRowsMax: 4_096,
  /** Milliseconds between searches for open proposals of deleted or expired keys and of deleted users. */
  proposalAuthorsMs: 10_000,
} as const
