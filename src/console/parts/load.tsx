import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { explain } from './explain.js'
import { Failure, Loading } from './texts.js'

/** Something that is read from the server. While it is read again, what was there before stays. */
export type Loaded<T> =
  | { kind: 'loading'; value: T | undefined }
  | { kind: 'failed'; value: undefined; message: string }
  | { kind: 'loaded'; value: T }

/** Something that is read, and a way to read it again. */
export interface Reading<T> {
  loaded: Loaded<T>
  reload: () => void
}

/**
 * Reads something when it is first shown, whenever `key` changes, and on demand.
 * @param key names what `load` reads; nothing is kept from one key to the next unless `load` says so
 */
export function useLoaded<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Reading<T> {
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

/** What was read; until then that it is being read, or why it cannot be. */
export function Read<T>(props: {
  of: Reading<T>
  /** What is read, as `the agents`. */
  what: string
  children: (value: T) => ComponentChildren
}) {
  const { of, what, children } = props
  const { loaded, reload } = of
  if (loaded.kind === 'failed') return <Failure message={loaded.message} retry={reload} />
  if (loaded.kind === 'loaded') return <>{children(loaded.value)}</>
  return loaded.value === undefined ? <Loading what={what} /> : <>{children(loaded.value)}</>
}

/** One long task at a time, which is stopped when what shows it goes. */
export function useTask(): {
  begin: () => AbortSignal
  stop: () => void
  /** Whether no other task was begun since. */
  isLast: (signal: AbortSignal) => boolean
} {
  const running = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  return {
    begin() {
      running.current?.abort()
      running.current = new AbortController()
      return running.current.signal
    },
    stop: () => running.current?.abort(),
    isLast: (signal) => running.current?.signal === signal,
  }
}

/** One change at a time, and why the last one failed. */
export function useChange(): {
  isBusy: boolean
  problem: ComponentChildren
  setProblem: (problem: ComponentChildren) => void
  /** @param refused says why it failed */
  run: (change: () => Promise<void>, refused?: (error: unknown) => ComponentChildren) => Promise<void>
} {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ComponentChildren>(undefined)
  return {
    isBusy,
    problem,
    setProblem,
    async run(change, refused = explain) {
      setBusy(true)
      setProblem(undefined)
      try {
        await change()
      } catch (error) {
        setProblem(refused(error))
      }
      setBusy(false)
    },
  }
}
