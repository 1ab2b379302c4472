import { signal, computed } from '@preact/signals'
import { createContext } from 'preact'
import type { ApiDocument, Operation } from './document.js'

/** The current document. */
export const Api = createContext<ApiDocument>({
  info: { title: '', version: '' },
  tags: [],
  paths: {},
  components: { securitySchemes: {} },
  'x-error-catalogue': [],
})

/** The key for requests, held in memory only. */
export const apiKey = signal('')

/** The search text. */
export const searchText = signal('')

const words = computed(() => searchText.value.toLowerCase().split(/\s+/).filter(Boolean))

/** Whether the search text has any words. */
export const isSearching = computed(() => words.value.length > 0)

/** Whether an operation contains all words of the search text. */
export function matchesSearch(operation: Operation): boolean {
  const { method, path, summary, tag, operationId } = operation
  const text = [method, path, summary, tag, operation['x-scope'], operationId].join(' ').toLowerCase()
  return words.value.every((word) => text.includes(word))
}
