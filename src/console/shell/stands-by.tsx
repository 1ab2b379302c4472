import type { Serving } from '../parts/server-state.js'

/** What a node of a cluster shows that stands by: it answers nobody, and another one does. */
export function StandsBy({ serving }: { serving: Serving | undefined }) {
  const url = serving?.url
  return (
    <div class="sign-in">
      <h1>This node stands by</h1>
      <p class="lead">
        Another node of its cluster serves. This one follows it, and takes over when that is gone.
      </p>
      <p class="notice" role="status">
        {serving === undefined ? 'No node is known to serve just now' : `The node ${serving.node} serves`}
        {url !== undefined && ` at ${url}`}
      </p>
      {url !== undefined && (
        <a class="button primary" href={`${url}/console`}>
          Open the console of {serving?.node}
        </a>
      )}
    </div>
  )
}
