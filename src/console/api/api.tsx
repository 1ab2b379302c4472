import { render } from 'preact'
import { applyAppearance } from '../shell/appearance.js'
import { escapeShownTexts } from '../parts/shown-texts.js'
import { ApiPage } from './api-page.js'

applyAppearance()
escapeShownTexts()
const container = document.querySelector('#api')
if (container !== null) render(<ApiPage />, container)
void takeOverSession()

/** Loads the console's session after the page, which is complete without one. */
async function takeOverSession(): Promise<void> {
  try {
    const { takeOver } = await import('./console-session.js')
    await takeOver()
  } catch {
    // The page works with a key that the user enters.
  }
}
