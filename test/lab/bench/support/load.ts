/** What a measurement saw. */
export interface LoadResult {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** How a measurement runs. */
export interface LoadPlan {
  readonly inFlight: number
  readonly warmUpMs: number
  readonly measureMs: number
}

export const STANDARD_LOAD: LoadPlan = { inFlight: 32, warmUpMs: 2_000, measureMs: 3_000 }

/**
 * Keeps `inFlight` operations going and counts those that end inside the measured window.
 *
 * @param operation one call; `lane` is its slot (0 … inFlight-1), for a connection or row of its own
 * @throws errors of an operation: a benchmark of failing calls measures nothing
 */
export async function measure(
  plan: LoadPlan,
  operation: (lane: number, count: number) => Promise<void>,
): Promise<LoadResult> {
  const latencies: number[] = []
  const begin = performance.now() + plan.warmUpMs
  const end = begin + plan.measureMs
  const lane = async (index: number) => {
    for (let count = 0; ; count++) {
      const from = performance.now()
      if (from >= end) return
      await operation(index, count)
      const to = performance.now()
      if (to >= begin && to < end) latencies.push(to - from)
    }
  }
  await Promise.all(Array.from({ length: plan.inFlight }, (_, index) => lane(index)))
  latencies.sort((a, b) => a - b)
  const at = (share: number) =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? Number.NaN
  return { perSecond: (latencies.length / plan.measureMs) * 1_000, p50Ms: at(0.5), p99Ms: at(0.99) }
}

/** Rounds of a comparison: neighbours on a shared machine come and go, the median of interleaved rounds stays. */
const ROUNDS = 3

/**
 * Measures several subjects in turn, round after round, and answers the median of each.
 *
 * @param subjects one measurement each, by name
 */
export async function measureInterleaved<Name extends string>(
  subjects: Readonly<Record<Name, () => Promise<LoadResult>>>,
): Promise<Record<Name, LoadResult>> {
  const names = Object.keys(subjects) as Name[]
  const results = new Map<Name, LoadResult[]>(names.map((name) => [name, []]))
  for (let round = 0; round < ROUNDS; round++) for (const name of names) results.get(name)?.push(await subjects[name]())
  return Object.fromEntries(names.map((name) => [name, medianOf(results.get(name) ?? [])])) as Record<Name, LoadResult>
}

function medianOf(results: readonly LoadResult[]): LoadResult {
  const median = (pick: (result: LoadResult) => number) =>
    results.map(pick).toSorted((a, b) => a - b)[Math.floor(results.length / 2)] ?? Number.NaN
  return { perSecond: median((r) => r.perSecond), p50Ms: median((r) => r.p50Ms), p99Ms: median((r) => r.p99Ms) }
}
