import { randomBytes } from 'node:crypto'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Random bytes are drawn in blocks: one call to the kernel per 256 ids instead of one each. */
const POOL_BYTES = 2_560
let pool = Buffer.alloc(0)
let poolOffset = 0

/**
 * A UUID version 7 (RFC 9562): milliseconds since the epoch, then 74 random bits, so that ids made later sort later
 * and new rows land at the right edge of an index.
 */
export function newId(nowMs: number = Date.now()): string {
  if (poolOffset + 10 > pool.length) {
    pool = randomBytes(POOL_BYTES)
    poolOffset = 0
  }
  const time = nowMs.toString(16).padStart(12, '0')
  const random = pool.toString('hex', poolOffset, poolOffset + 10)
  poolOffset += 10
  const variant = ((Number.parseInt(random.slice(3, 4), 16) & 0x3) | 0x8).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`
}

/** Tells whether the text is a UUID in its 36 character form, of any version. */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}
