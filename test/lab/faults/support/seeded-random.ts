const SEED_MAX = 2 ** 32

/**
 * Numbers in [0, 1) that a seed determines; says which on standard error, so that a script's choices can be repeated with
 * `PATCHBAY_FAULTS_SEED`. What the operating system makes of them is not repeated.
 */
export function seededRandom(script: string): () => number {
  const given = process.env.PATCHBAY_FAULTS_SEED
  const seed = given === undefined ? Math.floor(Math.random() * SEED_MAX) : Number(given)
  process.stderr.write(`${script}: PATCHBAY_FAULTS_SEED=${seed} makes these choices again\n`)
  return mulberry32(seed)
}

/** Tommy Ettinger's generator of 32 bits of state, in the public domain. */
export function mulberry32(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / SEED_MAX
  }
}
