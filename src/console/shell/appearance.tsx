import { effect, signal } from '@preact/signals'
import { isUtc, showUtc } from '../parts/format.js'
import { persistentStore } from '../storage.js'

export const appearances = ['system', 'light', 'dark'] as const

export type Appearance = (typeof appearances)[number]

const NAME = 'appearance'

export const appearance = signal<Appearance>(
  appearances.find((one) => one === persistentStore.read(NAME)) ?? 'system',
)

/** Applies the chosen appearance to the page, now and whenever it changes. */
export function applyAppearance(): void {
  effect(() => {
    document.documentElement.dataset['appearance'] = appearance.value
    persistentStore.write(NAME, appearance.value === 'system' ? undefined : appearance.value)
  })
}

/** A line at the end of each page that names the time zone, with a button to change it. */
export function TimeZoneSwitch() {
  return (
    <footer class="times muted">
      Times are in {isUtc.value ? 'UTC' : 'your time zone'}.
      <button type="button" class="quiet" onClick={() => showUtc(!isUtc.value)}>
        Show {isUtc.value ? 'local time' : 'UTC'}
      </button>
    </footer>
  )
}

/** A select field for the appearance. */
export function AppearanceSwitch() {
  return (
    <label class="appearance">
      <span class="hidden">Appearance</span>
      <select
        value={appearance.value}
        onChange={(event) => {
          const chosen = event.currentTarget.value
          appearance.value = appearances.find((one) => one === chosen) ?? 'system'
        }}
      >
        <option value="system">◐ Auto</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  )
}

/** The logo of Strandfast: two strands around each other. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect class="mark-ground" width="32" height="32" rx="8" />
      <path class="mark-back" d="M10 5c0 7 12 7 12 11s-12 4-12 11" />
      <path class="mark-front" d="M22 5c0 7-12 7-12 11s12 4 12 11" />
    </svg>
  )
}
