import type { RefObject } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

const steps: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }

/**
 * Makes the links and buttons of a group one stop of the Tab key: the current one, or the one used last. The
 * arrow keys, Home and End move between them. Each field of the group stays a stop.
 */
export function useRoving<Group extends HTMLElement>(): RefObject<Group | null> {
  const group = useRef<Group>(null)
  useLayoutEffect(() => {
    const { current: element } = group
    if (element === null) return undefined
    let last: HTMLElement | undefined
    const items = (): HTMLElement[] =>
      [...element.querySelectorAll<HTMLElement>('a, button:enabled, summary')].filter(
        (one) => one.tagName === 'SUMMARY' || one.closest('details, dialog') === null,
      )
    const update = (): void => {
      const all = items()
      const focused = all.find((one) => one === document.activeElement)
      const current = all.find((one) => one.hasAttribute('aria-current'))
      last = focused ?? current ?? all.find((one) => one === last) ?? all[0]
      for (const one of all) one.tabIndex = one === last ? 0 : -1
    }
    const onKeyDown = (event: KeyboardEvent): void => {
      const all = items()
      const at = all.findIndex((one) => one === event.target)
      const step = steps[event.key]
      const isEdge = event.key === 'Home' || event.key === 'End'
      if (at < 0 || (step === undefined && !isEdge) || event.altKey || event.ctrlKey || event.metaKey) return
      event.preventDefault()
      all.at(step === undefined ? (event.key === 'Home' ? 0 : -1) : (at + step) % all.length)?.focus()
    }
    const observer = new MutationObserver(update)
    observer.observe(element, {
      childList: true,
      subtree: true,
      attributeFilter: ['disabled', 'aria-current'],
    })
    element.addEventListener('focusin', update)
    element.addEventListener('keydown', onKeyDown)
    update()
    return () => {
      observer.disconnect()
      element.removeEventListener('focusin', update)
      element.removeEventListener('keydown', onKeyDown)
    }
  }, [])
  return group
}
