/** Versions start at 1, so this one matches no row. */
const UNMATCHED_VERSION = 0
const ETAG = /^(?:"v(\d{1,9})"|v(\d{1,9}))$/

/** The etag of a row's version, an entity tag as RFC 9110 has it, quotes included: `"v3"`. */
export function toEtag(version: number): string {
  return `"v${version}"`
}

/**
 * The version an etag stands for; the quotes may be missing. Text that never was an etag of ours stands for a version no
 * row has, so that it is a mismatch like any other.
 */
export function parseEtag(etag: string): number {
  const match = ETAG.exec(etag)
  return match === null ? UNMATCHED_VERSION : Number(match[1] ?? match[2])
}
