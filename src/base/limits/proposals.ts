/** The limits of proposals, and of what decides whose approvals count; a part of `limits`. */
export const proposalLimits = {
  /** Days after which a proposal without a decision expires (docs/adr/0014-proposals.md). */
  proposalDays: 7,
  /** Days for which an ended proposal keeps a row of its own; after that it is read from the strand. */
  proposalRowDays: 30,
  /** Rows of proposals that one search for old ones goes through. */
  proposalAgingRows: 256,
  /** Milliseconds between the end of such a search through all rows and the next one. */
  proposalAgingMs: 3_600_000,
  /** How many rows a proposal that is read from the strand counts for in a page. */
  proposalOfStrandRows: 8,
  /** Open proposals of one agent: a change of its zone ends them all, in one commit. */
  proposalsOpenMax: 1_000,
  /** Open proposals that do not erase: there is always room for keys to erase. */
  proposalsNotErasingMax: 900,
  /** Open proposals of one line of keys. */
  proposalsOfLineMax: 500,
  /** Open proposals of all users together, so that there is room for those of keys. */
  proposalsOfUsersMax: 400,
  /** Open proposals of one user. */
  proposalsOfUserMax: 32,
  /** Lines of keys that are remembered of one account, since they made it or could sign in to it. */
  reachingLinesMax: 16,
  /** Milliseconds between searches for proposals that are due. */
  proposalSweepMs: 1_000,
  /** Milliseconds between searches for open proposals of keys and users that were deleted or have expired. */
  proposalAuthorsMs: 10_000,
} as const
