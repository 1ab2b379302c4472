import { appearance, appearances } from './appearance.js'

/** Light, dark, or as the system is set. */
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
