import { useMemo } from 'preact/hooks'
import { goTo, query, withQuery } from '../route.js'
import { isoOf, msOfIso } from './format.js'

/** How a value is written behind the `?` of an address: as texts of one name, none for the usual value. */
export interface AddressType<T> {
  read: (texts: readonly string[]) => T
  write: (value: T) => readonly string[]
  /** Whether a change is a step of the browser's history; otherwise it replaces the current address. */
  isStep: boolean
}

/**
 * As `useState`, for what a page shows: the value is in the address, so that a reload, a bookmark, the history
 * and a link show the same. What cannot be read has its usual value, because anyone can write an address.
 */
export function useAddress<T>(name: string, type: AddressType<T>): [value: T, set: (value: T) => void] {
  const texts = new URLSearchParams(query.value).getAll(name)
  const value = useMemo(() => type.read(texts), [name, JSON.stringify(texts)])
  const set = (next: T): void => {
    const shown = new URLSearchParams(query.peek())
    shown.delete(name)
    for (const text of type.write(next)) shown.append(name, text)
    const [screen = ''] = location.hash.split('?')
    if (shown.toString() !== query.peek())
      goTo(withQuery(screen, shown.toString()), type.isStep ? 'push' : 'replace')
  }
  return [value, set]
}

/** The address of another part of the page that shows the same but for `change`; an empty text removes one. */
export function sameView(address: string, change: Readonly<Record<string, string>> = {}): string {
  const shown = new URLSearchParams(query.value)
  for (const [name, text] of Object.entries(change))
    if (text === '') shown.delete(name)
    else shown.set(name, text)
  return withQuery(address, shown.toString())
}

export const textType: AddressType<string> = {
  read: ([text = '']) => text,
  write: (text) => (text === '' ? [] : [text]),
  isStep: false,
}

/** The cursors that led to a page of a list. Of very many, `Back` leads over the last ones to the first page. */
export const cursorsType: AddressType<readonly string[]> = {
  read: (texts) => texts.slice(-CURSORS_MAX),
  write: (cursors) => cursors.slice(-CURSORS_MAX),
  isStep: true,
}
const CURSORS_MAX = 20

export const switchType: AddressType<boolean> = {
  read: (texts) => texts.includes('on'),
  write: (isOn) => (isOn ? ['on'] : []),
  isStep: false,
}

export const numberType: AddressType<number | undefined> = {
  read: ([text = '']) => (/^[0-9]{1,15}$/.test(text) ? Number(text) : undefined),
  write: (value) => (value === undefined ? [] : [String(value)]),
  isStep: true,
}

/** A time in Unix milliseconds, written in UTC, so that the address means the same in every time zone. */
export const timeType: AddressType<number | undefined> = {
  read: ([text = '']) => msOfIso(text),
  write: (ms) => (ms === undefined ? [] : [isoOf(ms).replace('.000Z', 'Z')]),
  isStep: true,
}

/** One of some values, the first of which is the usual one. */
export function choiceType<C extends string>(choices: readonly [C, ...C[]]): AddressType<C> {
  return {
    read: ([text]) => choices.find((one) => one === text) ?? choices[0],
    write: (value) => (value === choices[0] ? [] : [value]),
    isStep: true,
  }
}
