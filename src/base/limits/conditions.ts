/** The limits of conditions on bodies, which the console has as well; a part of `limits`. */
export const conditionLimits = {
  /** Conditions in the `where` of one query, and in one row policy. */
  whereConditionsMax: 32,
  /** Items of the list that a condition with `in` compares with. */
  whereItemsMax: 1_000,
  /** Row policies of one agent. */
  policiesMax: 64,
  /** Bytes of the policies that allow a user one action, with the values of their placeholders, each once. */
  grantBytesMax: 65_536,
  /** Bytes of grants that streams of users hold; beyond that further ones are answered 503. */
  streamGrantBytesMax: 67_108_864,
  /** Bytes of grants that the streams of one user hold. */
  streamGrantBytesPerPrincipalMax: 16_777_216,
  /** Agents of one stream whose grants a user's shards are asked for at once. */
  streamGrantsAtOnce: 32,
  /** Bytes of compiled grants that each thread caches. */
  grantsKeptBytes: 33_554_432,
}
