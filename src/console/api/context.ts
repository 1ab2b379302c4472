import { signal, computed } from '@preact/signals'
import { createContext } from 'preact'
import type { ApiDocument, Operation } from './document.js'

export const Api = createContext<ApiDocument>({
  info: { title: '', version: '' },
  tags: [],
  paths: {},
  components: { securitySchemes: {} },
  'x-error-catalogue': [],
})

/** The key for requests: that of the console's session, or one that was entered, held in memory only. */
export const apiKey = signal('')

/** The key of the console's session and its owner; undefined if the console is not signed in. */
export const consoleKey = signal<{ key: string; identity: string } | undefined>(undefined)

/** An agent that exists, and the hash of its last record; undefined if none is known. */
export interface ExampleAgent {
  agent: string
  hash: string
}

/** The agent that the examples use. */
export const exampleAgent = signal<ExampleAgent | undefined>(undefined)

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
