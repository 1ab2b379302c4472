import fc from 'fast-check'
import { seed } from './run-seed.js'

// fast-check by itself draws from the time of day. Test files import it from here (test/house/random-choices.test.ts).
fc.configureGlobal({
  seed,
  // A failure is reported before the test runs out of its time, as small as it has become by then.
  interruptAfterTimeLimit: 45_000,
  markInterruptAsFailure: true,
})

export { fc }
