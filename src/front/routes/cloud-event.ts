import { refuse, type Refusal } from '../../base/errors.js'
import type { EventHead } from '../../protocol/record-messages.js'
import { isJsonData, mediaTypeOf } from '../../wire/media-type.js'
import type { RequestHeaders } from './route.js'

/*
 * CloudEvents 1.0 in binary mode (HTTP Protocol Binding): the attributes come as `ce-` headers, the body is the data.
 */

/** What the JSON format of events names otherwise, or Content-Type tells. */
const notByHeader = new Set(['data', 'datacontenttype'])

/** The attributes of an event of binary mode; 400 for what cannot be one. The shard looks for those that it must have. */
export function eventHead({ event, contentType }: RequestHeaders): EventHead | Refusal {
  const attributes: Record<string, string> = {}
  for (const [name, raw] of event) {
    const value = decoded(raw)
    if (!/^[a-z0-9]+$/.test(name) || notByHeader.has(name) || value === undefined) {
      return refuse(
        'validation_failed',
        'Expected ce- headers with names of a-z and 0-9, and percent-encoded values',
      )
    }
    if (Object.hasOwn(attributes, name)) return refuse('validation_failed', `Expected one header ce-${name}`)
    attributes[name] = value
  }
  if (contentType !== '') attributes['datacontenttype'] = contentType
  return { attributes, data: dataOf(mediaTypeOf(contentType)) }
}

function dataOf(mediaType: string): EventHead['data'] {
  if (isJsonData(mediaType)) return 'json'
  return mediaType.startsWith('text/') ? 'text' : 'base64'
}

/** A value of a header; a `%` that no two hex digits follow is itself, as senders write it that encode nothing. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll(/%(?![\da-f]{2})/gi, '%25'))
  } catch {
    // Not percent-encoded UTF-8.
    return undefined
  }
}
