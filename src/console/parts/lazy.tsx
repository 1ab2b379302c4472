import type { ComponentType } from 'preact'
import { Failure, Loading } from './texts.js'
import { useLoaded } from './load.js'

/** A screen whose script is loaded when it is first shown, so that the first load stays small. */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  // Kept from one time that it is shown to the next.
  let screen: ComponentType<Props> | undefined
  return function LazyScreen(props: Props) {
    const { loaded } = useLoaded('', async () => {
      screen ??= await load()
      return screen
    })
    const Screen = screen
    if (Screen !== undefined) return <Screen {...props} />
    if (loaded.kind !== 'failed') return <Loading what="the screen" />
    // A server that was updated has other scripts. What failed once, some browsers never ask for again.
    return (
      <div class="page narrow">
        <Failure
          message="This screen could not be loaded: the server is away, or was updated since this page was loaded."
          retry={() => location.reload()}
        />
      </div>
    )
  }
}
