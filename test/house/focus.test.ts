import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

/** The effects of a component that run later than its change, up to their dependencies. */
const LATER_EFFECT = /useEffect\(([^]*?)\n? *(?:\}, |, )\[/g

/** The effects in a text that move the focus; not those whose listeners do, when the user acts. */
const movingFocus = (text: string) =>
  [...text.matchAll(LATER_EFFECT)].filter(
    ([effect]) => effect.includes('.focus(') && !effect.includes('addEventListener'),
  )

describe('effects of the console that move the focus', () => {
  it('run together with the change, because later the user may have put the focus elsewhere', () => {
    expect(movingFocus('useEffect(() => {\n  element?.focus()\n}, [])')).toHaveLength(1)
    expect(movingFocus('useEffect(() => button.current?.focus(), [])')).toHaveLength(1)
    const files = readdirSync('src/console', { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.tsx'),
    )
    expect(files.length).toBeGreaterThan(50)
    const found = files.filter((name) => movingFocus(readFileSync(`src/console/${name}`, 'utf8')).length > 0)
    expect(found).toEqual([])
  })
})
