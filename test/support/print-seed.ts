import type { TestProject } from 'vitest/node'

/** Prints the seed of the run, once, with which STRANDFAST_SEED repeats it. */
export function setup({ config }: TestProject): void {
  console.log(`STRANDFAST_SEED=${config.env['STRANDFAST_SEED']}`)
}
