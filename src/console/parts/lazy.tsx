import type { ComponentType } from 'preact'
import { Failure, Loading } from './texts.js'
import { useLoaded } from './load.js'

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
