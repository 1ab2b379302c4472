import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

/** A modal dialog element: it keeps the focus inside, closes on Escape, and returns the focus. */
export function Dialog(props: {
  title: string
  class: string
  close: () => void
  children: ComponentChildren
}) {
  const { title, close, children } = props
  const dialog = useRef<HTMLDialogElement>(null)
  const pressed = useRef<EventTarget | null>(null)
  // A layout effect is cleaned up before the element is removed, so the focus is never lost in between.
  useLayoutEffect(() => {
    const before = document.activeElement
    const { current } = dialog
    current?.showModal()
    return () => {
      // A dialog that is removed while open does not return the focus.
      current?.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class={props.class}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault()
        close()
      }}
      onPointerDown={({ target }) => {
        pressed.current = target
      }}
      onClick={({ target }) => {
        // A click on the backdrop has the dialog itself as its target. A selection of text can end there.
        if (target === dialog.current && pressed.current === target) close()
      }}
    >
      <div class="dialog-inside">{children}</div>
    </dialog>
  )
}
