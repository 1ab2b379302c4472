/** A media type without its parameters. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(';')[0]?.trim().toLowerCase() ?? ''
}

/** Whether data of a media type is JSON, as it is where none is named (CloudEvents 1.0, JSON Event Format). */
export function isJsonData(mediaType: string): boolean {
  return mediaType === '' || /^(?:application|text)\/(?:[^/]+\+)?json$/.test(mediaType)
}
