import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

/** The browser's own dialog: it keeps the focus inside, closes on Escape, and gives the focus back. */
export function Dialog(props: {
  title: string
  class: string
  close: () => void
  children: ComponentChildren
}) {
  const { title, close, children } = props
  const dialog = useRef<HTMLDialogElement>(null)
  // Another kind of effect would end after the dialog has gone, and the focus would be nowhere until then.
  useLayoutEffect(() => {
    const before = document.activeElement
    const { current } = dialog
    current?.showModal()
    return () => {
      // Removed while open, it would not give the focus back by itself.
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
      onClick={(event) => {
        // The area around an open dialog belongs to it.
        if (event.target === dialog.current) close()
      }}
    >
      <div class="dialog-inside">{children}</div>
    </dialog>
  )
}
