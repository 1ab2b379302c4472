import fc from 'fast-check'
import { seed } from './run-seed.js'

// By default, fast-check uses a random seed. Test files import it from this file
// (test/house/random-choices.test.ts).
fc.configureGlobal({
  seed,
  // A failure is reported before the time limit of the test, even if it is not fully shrunk.
  interruptAfterTimeLimit: 45_000,
  markInterruptAsFailure: true,
})

export { fc }
