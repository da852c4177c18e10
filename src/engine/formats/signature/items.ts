import { getAtPath, parseDotPath } from '../../../foundation/json/index.ts'
import { fieldPath } from '../schema-types.ts'
import { invalid, ok, type Result, VALID, type Verify, type WebhookRequest } from './verification.ts'

/** Most entries of one request whose signatures are verified. */
const ITEMS_MAX = 1_000

/** Setting of the formats that can verify the entries of a list. */
export const itemsKey = fieldPath()
  .optional()
  .describe(
    'Path of a list in the payload whose entries are signed one by one: each of them, at least one, has to pass. Tokens read the entry as `$item.<path>`.',
  )

/** Verifies every entry of the list at `path`; the request itself where there is no path. */
export function verifyItems(path: string | undefined, verify: Verify): Verify {
  if (path === undefined) return verify
  return async (request, scope, context) => {
    const items = listItems(path, request)
    if (items.kind === 'invalid') return items
    for (const item of items.value) {
      const result = await verify(item, scope, context)
      if (result.kind === 'invalid') return result
    }
    return VALID
  }
}

/** The request once for each entry of its list. */
export function listItems(path: string, request: WebhookRequest): Result<readonly WebhookRequest[]> {
  const items = getAtPath(request.payload, parseDotPath(path))
  if (!Array.isArray(items) || items.length === 0) return invalid(`the payload has no list with entries at ${path}`)
  if (items.length > ITEMS_MAX) return invalid(`the list at ${path} has more than ${ITEMS_MAX} entries`)
  return ok(items.map((item) => ({ ...request, item })))
}
