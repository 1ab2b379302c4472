import type { TargetedToggleEvent } from 'preact'
import { useState } from 'preact/hooks'

/** Whether something was ever open. What nobody opens is not made: a page of a hundred operations has much of it. */
export function useOpened(isOpen: boolean) {
  const [wasOpen, setOpened] = useState(isOpen)
  const onToggle = ({ currentTarget }: TargetedToggleEvent<HTMLDetailsElement>): void => {
    if (currentTarget.open) setOpened(true)
  }
  return { wasOpen, onToggle }
}
