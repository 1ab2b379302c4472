/** The limits of conditions on bodies, which the console has as well; a part of `limits`. */
export const conditionLimits = {
  /** Conditions in the `where` of one query, and in one row policy. */
  whereConditionsMax: 32,
  /** Items of the list that a condition with `in` compares with. */
  whereItemsMax: 1_000,
  /** Row policies of one agent. */
  policiesMax: 64,
}
