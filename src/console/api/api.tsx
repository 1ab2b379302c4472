import { render } from 'preact'
import { applyAppearance } from '../shell/appearance.js'
import { ApiPage } from './api-page.js'

applyAppearance()
const place = document.querySelector('#api')
if (place !== null) render(<ApiPage />, place)
