import type { WhereCondition } from '../../client/index.js'

/** Comparisons, and how the form says them. */
export const operatorWords: Record<WhereCondition['op'], string> = {
  eq: 'is',
  ne: 'is not',
  in: 'is one of',
  lt: 'is less than',
  lte: 'is at most',
  gt: 'is more than',
  gte: 'is at least',
  exists: 'is there',
}
