import { signal } from '@preact/signals'
import { persistentStore } from '../storage.js'

const NAME = 'times'

/** Whether the console shows and reads times in UTC; otherwise in the browser's time zone. */
export const isUtc = signal(persistentStore.read(NAME) === 'utc')

/** Chooses the time zone, also for later visits. */
export function showUtc(isOn: boolean): void {
  isUtc.value = isOn
  persistentStore.write(NAME, isOn ? 'utc' : undefined)
}
