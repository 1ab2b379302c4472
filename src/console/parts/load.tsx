import type { ComponentChildren, ComponentType } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { explain } from './explain.js'
import { Failure, Loading } from './texts.js'

/** The state of a read. While the value is read again, the previous one stays visible. */
export type Loaded<T> =
  | { kind: 'loading'; value: T | undefined }
  | { kind: 'failed'; value: undefined; message: string }
  | { kind: 'loaded'; value: T }

/** A value from the server, and a function that reads it again. */
export interface Reading<T> {
  loaded: Loaded<T>
  reload: () => void
}

/**
 * Reads a value when the component is first shown, whenever `key` changes, and on `reload`.
 * @param key identifies what `load` reads; a value is never shown under another key
 */
export function useLoaded<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Reading<T> {
  const [state, setState] = useState<{ key: string; loaded: Loaded<T> }>({
    key,
    loaded: loading<T>(undefined),
  })
  const [attempt, setAttempt] = useState(0)
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
  }, [key, attempt])
  const reload = useCallback(() => setAttempt((before) => before + 1), [])
  return { loaded: state.key === key ? state.loaded : loading<T>(undefined), reload }
}

function loading<T>(value: T | undefined): Extract<Loaded<T>, { kind: 'loading' }> {
  return { kind: 'loading', value }
}

/** Renders a value once it was read; until then a loading text, or the reason of a failure. */
export function Read<T>(props: {
  of: Reading<T>
  /** Names the value, for example `the agents`. */
  what: string
  children: (value: T) => ComponentChildren
}) {
  const { of, what, children } = props
  const { loaded, reload } = of
  if (loaded.kind === 'failed') return <Failure message={loaded.message} retry={reload} />
  if (loaded.kind === 'loaded') return <>{children(loaded.value)}</>
  return loaded.value === undefined ? <Loading what={what} /> : <>{children(loaded.value)}</>
}

/** Runs one long task at a time, and aborts it when the component is removed. */
export function useTask(): {
  begin: () => AbortSignal
  stop: () => void
  /** Whether no other task has started since. */
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

/** Runs one change at a time, and reports why the last one failed. */
export function useChange(): {
  isBusy: boolean
  problem: ComponentChildren
  setProblem: (problem: ComponentChildren) => void
  /** @param explainError turns the error of a failed change into a message */
  run: (change: () => Promise<void>, explainError?: (error: unknown) => ComponentChildren) => Promise<void>
} {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ComponentChildren>(undefined)
  return {
    isBusy,
    problem,
    setProblem,
    async run(change, explainError = explain) {
      setBusy(true)
      setProblem(undefined)
      try {
        await change()
      } catch (error) {
        setProblem(explainError(error))
      }
      setBusy(false)
    },
  }
}

/** A screen whose script is loaded when it is first shown, which keeps the initial load small. */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  // Loaded once, and reused whenever the screen is shown again.
  let screen: ComponentType<Props> | undefined
  return function LazyScreen(props: Props) {
    const { loaded } = useLoaded('', async () => {
      screen ??= await load()
      return screen
    })
    const Screen = screen
    if (Screen !== undefined) return <Screen {...props} />
    if (loaded.kind !== 'failed') return <Loading what="the screen" />
    // An updated server has other scripts, and some browsers never retry a failed import. Only a reload
    // helps.
    return (
      <div class="page narrow">
        <Failure
          message="This screen could not be loaded: the server does not respond, or was updated after this page was loaded."
          retry={() => location.reload()}
        />
      </div>
    )
  }
}
