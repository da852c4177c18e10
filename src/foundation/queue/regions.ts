/** Where accounts live and their work is done. */
export const REGIONS = ['wnam', 'enam', 'apac', 'eu'] as const

/** One of `REGIONS`. */
export type Region = (typeof REGIONS)[number]
