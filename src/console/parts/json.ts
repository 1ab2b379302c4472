/** The value of a JSON text; undefined for any other text, for example a proxy's page. */
export function valueOfJson(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The members of a JSON object; undefined for any other text. */
export function objectOfJson(text: string | undefined): Record<string, unknown> | undefined {
  const value = valueOfJson(text)
  return isObject(value) ? { ...value } : undefined
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
