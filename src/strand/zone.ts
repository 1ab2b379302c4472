/** Zones decide which mutations of written records are allowed (docs/ZONES.md). */
export const zones = ['immutable_core', 'protected', 'governed', 'free'] as const

export type Zone = (typeof zones)[number]

/** Whether `text` names a zone. */
export function isZone(text: string): text is Zone {
  return zones.some((zone) => zone === text)
}
