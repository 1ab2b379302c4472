import fc from 'fast-check'
import { seed } from './run-seed.js'

// fast-check by itself draws from the time of day. Test files import it from here (test/house/test-runs.test.ts).
fc.configureGlobal({ seed })

export { fc }
