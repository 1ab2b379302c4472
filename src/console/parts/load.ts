import { useCallback, useEffect, useState } from 'preact/hooks'
import { explain } from './explain.js'

/** Something that is read from the server. While it is read again, what was there before stays. */
export type Loaded<T> =
  | { kind: 'loading'; value: T | undefined }
  | { kind: 'failed'; value: undefined; message: string }
  | { kind: 'loaded'; value: T }

/**
 * Reads something when it is first shown, whenever `key` changes, and on demand.
 * @param key names what `load` reads; nothing is kept from one key to the next unless `load` says so
 */
export function useLoaded<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
): { loaded: Loaded<T>; reload: () => void } {
  const [state, setState] = useState<{ key: string; loaded: Loaded<T> }>({
    key,
    loaded: loading<T>(undefined),
  })
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    setState((before) => ({ key, loaded: loading(before.key === key ? before.loaded.value : undefined) }))
    load(signal).then(
      (value) => {
        if (!signal.aborted) setState({ key, loaded: { kind: 'loaded', value } })
      },
      (error: unknown) => {
        if (!signal.aborted)
          setState({ key, loaded: { kind: 'failed', value: undefined, message: explain(error) } })
      },
    )
    return () => controller.abort()
  }, [key, turn])
  const reload = useCallback(() => setTurn((before) => before + 1), [])
  return { loaded: state.key === key ? state.loaded : loading<T>(undefined), reload }
}

function loading<T>(value: T | undefined): Extract<Loaded<T>, { kind: 'loading' }> {
  return { kind: 'loading', value }
}
