import { getAtPath, parseDotPath } from '../../base/index.ts'
import { fieldPath } from '../schema-types.ts'
import { type InboundDelivery, invalid, ok, type Result, VALID, type Verify } from './signature.ts'

/** Most entries of one delivery whose signatures are verified. */
const ITEMS_MAX = 1_000

/** Setting of the formats that can verify the entries of a list. */
export const itemsKey = fieldPath()
  .optional()
  .describe(
    'Path of a list in the payload whose entries are signed one by one: each of them, at least one, has to pass. Tokens read the entry as `$item.<path>`.',
  )

/** Verifies every entry of the list at `path`; the delivery itself where there is no path. */
export function verifyItems(path: string | undefined, verify: Verify): Verify {
  if (path === undefined) return verify
  return async (delivery, scope, context) => {
    const items = listItems(path, delivery)
    if (items.kind === 'invalid') return items
    for (const item of items.value) {
      const result = await verify(item, scope, context)
      if (result.kind === 'invalid') return result
    }
    return VALID
  }
}

/** The delivery once for each entry of its list. */
export function listItems(path: string, delivery: InboundDelivery): Result<readonly InboundDelivery[]> {
  const items = getAtPath(delivery.payload, parseDotPath(path))
  if (!Array.isArray(items) || items.length === 0) return invalid(`the payload has no list with entries at ${path}`)
  if (items.length > ITEMS_MAX) return invalid(`the list at ${path} has more than ${ITEMS_MAX} entries`)
  return ok(items.map((item) => ({ ...delivery, item })))
}
