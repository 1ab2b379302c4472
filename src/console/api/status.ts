/** Whether a status, or its class as `2XX`, says that the request was carried out. */
export const isGood = (status: string): boolean => status.startsWith('2')

/** How the number of a status is shown. */
export function statusClass(status: string): string {
  if (isGood(status)) return 'good'
  return status.startsWith('5') ? 'broken' : 'wrong'
}
