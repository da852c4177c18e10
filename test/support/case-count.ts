import { PROTOCOLS, type Protocol } from './client.ts'

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

/**
 * The cases of a convention that are tried over a wire: each one over one wire in `npm test`, by turns from a start that the seed
 * decides, and over all of them where TEST_CASES=many is set.
 */
export function overWire<Case>({ wire }: { readonly wire: Protocol }, cases: readonly Case[]): readonly Case[] {
  if (process.env.TEST_CASES === 'many') return cases
  const turn = PROTOCOLS.indexOf(wire) + runSeed()
  return cases.filter((_case, index) => (index + turn) % PROTOCOLS.length === 0)
}
