/** Limits of conditions on bodies. The console uses them too. */
export const conditionLimits = {
  /** Conditions in the `where` of one query, and in one row policy. */
  whereConditionsMax: 32,
  /** Items in the list of a condition with `in`. */
  whereItemsMax: 1_000,
  /** Characters of a text that is searched for: up to 250, a search never takes longer than the text is long. */
  whereTextMax: 250,
  /** Row policies of one agent. */
  policiesMax: 64,
  /**
   * Bytes of the policies that allow a user one action, with the values of their placeholders counted once.
   */
  grantBytesMax: 65_536,
  /** Bytes of grants of all user streams; beyond that, further streams are answered 503. */
  streamGrantBytesMax: 67_108_864,
  /** Bytes of grants of the streams of one user. */
  streamGrantBytesPerPrincipalMax: 16_777_216,
  /** Grants of one stream that are read at the same time. */
  streamGrantsInFlightMax: 32,
  /** Bytes of compiled grants in the cache of each thread. */
  cachedGrantBytesMax: 33_554_432,
}
