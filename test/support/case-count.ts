/**
 * How many random cases a property takes: few in `npm test`, many where TEST_CASES=many is set, as CI does for its one run.
 *
 * The seed is the run's, which the end of its output names: TEST_SEED=<seed> repeats the cases.
 */
export function caseCount(few: number, many: number): number {
  return process.env.TEST_CASES === 'many' ? many : few
}

/** The seed of the run, for generators other than those of fast-check, which take it by default. */
export function runSeed(): number {
  return Number(process.env.TEST_SEED)
}
