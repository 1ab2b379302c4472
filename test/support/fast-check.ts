import fc from 'fast-check'
import { patienceMs } from './ci-only.js'
import { seed } from './run-seed.js'

// fast-check by itself draws from the time of day. Test files import it from here (test/house/test-runs.test.ts).
fc.configureGlobal({
  seed,
  // What fails is told before the test runs out of its time, as small as it has become by then.
  interruptAfterTimeLimit: patienceMs(process.env) * 0.75,
  markInterruptAsFailure: true,
})

export { fc }
