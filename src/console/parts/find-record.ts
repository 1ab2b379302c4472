import { type FoundRecord, NotFoundError, type ServiceClient } from '../../client/index.js'

/** The digits of a hash as copied or shown: whole, or the first 8 or more; undefined for any other text. */
export function hashDigits(text: string): string | undefined {
  return /^(?:sha256:)?([0-9a-f]{8,64})…?$/.exec(text.trim().toLowerCase())?.[1]
}

/** The records that the key may read and whose hash begins with the digits, newest first. */
export async function findRecords(
  service: ServiceClient,
  digits: string,
  signal: AbortSignal,
): Promise<FoundRecord[]> {
  try {
    return await service.findRecords(digits, { signal })
  } catch (error) {
    if (error instanceof NotFoundError) return []
    throw error
  }
}
