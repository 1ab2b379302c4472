/**
 * What may happen to records once they are written (docs/OPERATIONS.md, Zones and proposals). Appending is never a
 * mutation.
 */
export const zones = ['immutable_core', 'protected', 'governed', 'free'] as const

export type Zone = (typeof zones)[number]

/** Whether `text` names a zone. */
export function isZone(text: string): text is Zone {
  return zones.some((zone) => zone === text)
}
