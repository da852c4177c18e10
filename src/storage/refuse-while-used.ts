import { Failure } from '../base/index.ts'
import { isForeignKeyViolation } from './database-errors.ts'

/**
 * Runs a delete whose foreign keys refuse it while the thing is used.
 *
 * @throws Failure RESOURCE_IN_USE saying `why`, which also tells the caller what to do
 */
export async function mapForeignKeyToInUse<Result>(
  used: { readonly type: string; readonly id: string; readonly why: string },
  remove: () => Promise<Result>,
): Promise<Result> {
  try {
    return await remove()
  } catch (cause) {
    if (!isForeignKeyViolation(cause)) throw cause
    throw new Failure('RESOURCE_IN_USE', used.why, { resource: { type: used.type, id: used.id }, cause })
  }
}
