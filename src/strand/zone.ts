/** What may happen to records once they are written (spec.md, Zones). Appending is never a mutation. */
export const zones = ['immutable_core', 'protected', 'governed', 'free'] as const

export type Zone = (typeof zones)[number]
