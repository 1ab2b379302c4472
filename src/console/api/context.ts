import { signal, computed } from '@preact/signals'
import { createContext } from 'preact'
import type { ApiDocument, Operation } from './document.js'

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

/** What is looked for. */
export const searched = signal('')

const words = computed(() => searched.value.toLowerCase().split(/\s+/).filter(Boolean))

/** Whether something is looked for. */
export const isSearching = computed(() => words.value.length > 0)

/** Whether an operation has each word that is looked for. */
export function fits(operation: Operation): boolean {
  const { method, path, summary, tag, operationId } = operation
  const text = [method, path, summary, tag, operation['x-scope'], operationId].join(' ').toLowerCase()
  return words.value.every((word) => text.includes(word))
}
