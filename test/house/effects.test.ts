import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { codeBelow } from './tree.js'

/*
 * An effect runs after the page was painted, and replaces what was typed since it was rendered. One that sets
 * state is a layout effect, which runs before any further event.
 */

/**
 * The effects of a text that set what can be typed or chosen, other than in a function that is called later. A
 * `setState` sets what was loaded or calculated.
 */
function settingEffects(text: string): string[] {
  const effects = text.matchAll(/\buseEffect\(\(\) =>(?:[^{\n]*$| \{[^]*?^ {2}\},)/gm)
  return [...effects].flatMap(([effect]) =>
    /^ {4}(?:if \(.*\) )?set(?!State|Timeout)[A-Z]\w*\(|=> set[A-Z]\w*\(.*\), \[/m.test(effect)
      ? [effect]
      : [],
  )
}

it.each([
  '  useEffect(() => {\n    setDraft(applied)\n  }, [applied])',
  '  useEffect(() => {\n    const one = 1\n    if (one !== two) setText(two)\n  }, [two])',
  '  useEffect(() => setOpen(false), [shown])',
])('finds %j', (text) => expect(settingEffects(text)).toHaveLength(1))

it.each([
  '  useLayoutEffect(() => {\n    setDraft(applied)\n  }, [applied])',
  '  useEffect(() => {\n    const timer = setTimeout(() => setRested(at), 200)\n  }, [at])',
  '  useEffect(() => {\n    begin()\n  }, [])\n  const change = () => {\n    setText(two)\n  }',
])('allows %j', (text) => expect(settingEffects(text)).toEqual([]))

it('sets nothing that can be typed or chosen in an effect of the console', () => {
  expect(codeBelow('src/console').flatMap((path) => settingEffects(readFileSync(path, 'utf8')))).toEqual([])
})
