import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { environment } from '../../../bench/environment.mjs'
import { measureCheckout, measuredCheckout, program } from '../../../bench/product.mjs'

const other = mkdtempSync(join(tmpdir(), 'bench-product-'))
afterAll(() => rmSync(other, { recursive: true }))

describe('measureCheckout', () => {
  it('selects the build of another checkout and its commit', () => {
    const built = 'dist/program/strandfast.js'
    const plan = { cores: 2, generator: 'wrk', quick: true }
    expect(resolve(measuredCheckout())).toBe(process.cwd())
    expect(program()).toBe(resolve(built))
    expect(() => measureCheckout(other)).toThrow(`Expected --product to be built: no ${join(other, built)}`)
    expect(program()).toBe(resolve(built))
    mkdirSync(join(other, 'dist/program'), { recursive: true })
    writeFileSync(join(other, built), '')
    measureCheckout(other)
    expect(program()).toBe(join(other, built))
    // The checkout is not a Git repository.
    expect(environment(plan).commit).toBeNull()
  })
})
