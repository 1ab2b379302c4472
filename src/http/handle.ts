import type { Refusal } from '../base/errors.js'
import type { Answer } from '../routes/route.js'
import type { Route } from '../routes/routes.js'
import { act } from './act.js'
import { admit, isWrite, type Admitted, type Placed } from './admit.js'
import { takeBody } from './body.js'
import { guarded } from './guarded.js'
import type { Handling } from './handling.js'
import { openRequest, readParameters, type Door } from './head.js'
import type { HttpRequest, HttpResponse } from './uws.js'

/**
 * Makes the handler of a route: the life of one request. Each step gets what the ones before it found, and gives the
 * next one more or ends with a refusal (docs/ARCHITECTURE.md, The life of a request).
 */
export function handlerOf(
  route: Route,
  handling: Handling,
  headOnly = false,
): (response: HttpResponse, request: HttpRequest) => void {
  const parameterCount = route.path.split('/:').length - 1
  const bodyBytesMax = 'bodyBytesMax' in route ? route.bodyBytesMax : 0
  const watch = handling.metrics.watch(route)
  const writes = isWrite(route)
  const door: Door = {
    opening: handling,
    watch,
    headOnly,
    takesBody: route.kind === 'ingest' || route.kind === 'import' || bodyBytesMax > 0,
    rate: route.kind === 'auth' ? 'auth' : 'global',
  }
  return (response, request) => {
    watch.begin()
    const opened = openRequest(response, request, door)
    if (opened === undefined) return
    const { exchange, head } = opened
    const place: Placed = {
      head,
      parameters: readParameters(request, parameterCount),
      writes,
      addressOf: () => handling.rates.addressOf(response, head.headers),
    }
    const goOn = (admitted: Admitted | Refusal | Answer) => {
      if ('code' in admitted) exchange.refuse(admitted)
      else if ('status' in admitted) exchange.answer(admitted)
      else {
        exchange.ownerOf = admitted.ownerOf
        const { principal } = admitted
        takeBody(exchange, { bodyBytesMax, uploads: handling.uploads, head, principal }, (body) =>
          guarded(exchange, handling, () => act(route, { exchange, admitted, body }, handling)),
        )
      }
    }
    guarded(exchange, handling, () => {
      const admitted = admit(route, place, handling)
      if (!(admitted instanceof Promise)) return goOn(admitted)
      // A token that is not known yet is verified first; the body waits.
      exchange.holdBody()
      return admitted.then(goOn)
    })
  }
}
