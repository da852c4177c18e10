import { PROTOCOLS, type Protocol } from './client.ts'

/**
 * How many random cases a property takes: few in `npm test`, many where TEST_CASES=many is set, as CI does for its one run. Where
 * all cases together take minutes, CI takes some of them too, others with each seed, and TEST_CASES=all takes all.
 *
 * The seed is the run's, which the end of its output names: TEST_SEED=<seed> repeats the cases.
 */
export function caseCount(few: number, many: number, all = many): number {
  if (process.env.TEST_CASES === 'all') return all
  return hasManyCases() ? many : few
}

/** Whether this is CI's run, which tries everything. */
export function hasManyCases(): boolean {
  return process.env.TEST_CASES === 'many' || process.env.TEST_CASES === 'all'
}

/**
 * Some of the cases of a table in `npm test`, at even distances from a start that the seed decides; all of them where
 * TEST_CASES=many is set.
 *
 * @param turn moves the start: blocks that take cases of one table take others with each turn
 */
export function someCases<Case>(cases: readonly Case[], few: number, turn = 0): readonly Case[] {
  if (hasManyCases() || few >= cases.length) return cases
  const start = (runSeed() + turn) % cases.length
  const taken = new Set(
    Array.from({ length: few }, (_, index) => (start + Math.floor((index * cases.length) / few)) % cases.length),
  )
  return cases.filter((_case, index) => taken.has(index))
}

const blocks = new WeakMap<readonly unknown[], number>()

/**
 * The clients over which the tests of a block run: in `npm test` one, by turns from block to block of a file and from a start
 * that the seed decides; all of them where TEST_CASES=many is set.
 */
export function inTurn<Client>(clients: readonly Client[]): readonly Client[] {
  if (hasManyCases()) return clients
  const block = blocks.get(clients) ?? 0
  blocks.set(clients, block + 1)
  const turn = (runSeed() + block) % clients.length
  return clients.filter((_client, index) => index === turn)
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
  if (hasManyCases()) return cases
  const turn = PROTOCOLS.indexOf(wire) + runSeed()
  return cases.filter((_case, index) => (index + turn) % PROTOCOLS.length === 0)
}
