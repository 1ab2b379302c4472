import { render } from 'preact'
import { applyAppearance } from '../shell/appearance.js'
import { ApiPage } from './api-page.js'

applyAppearance()
const container = document.querySelector('#api')
if (container !== null) render(<ApiPage />, container)
