import { signal } from '@preact/signals'
import { createContext } from 'preact'
import type { ApiDocument } from './document.js'

/** The document that is shown. */
export const Api = createContext<ApiDocument>({
  info: { title: '', version: '' },
  tags: [],
  paths: {},
  components: { securitySchemes: {} },
  'x-error-catalogue': [],
})

/** The key that requests are sent with: in memory, and nowhere else. */
export const apiKey = signal('')
