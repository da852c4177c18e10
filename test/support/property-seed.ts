import fc from 'fast-check'
import { runSeed } from './case-count.ts'

fc.configureGlobal({ seed: runSeed() })
