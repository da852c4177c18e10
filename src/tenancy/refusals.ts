import { Failure } from '../base/index.ts'
import { isForeignKeyViolation } from '../storage/index.ts'

/** The caller decided on a state that is no longer there. */
export function etagMismatch(type: string, id: string): Failure {
  const message = `the ${type} has changed since it was read: read it again, then repeat the change`
  return new Failure('ETAG_MISMATCH', message, { resource: { type, id } })
}

/** Runs a delete whose foreign keys refuse it while the thing is used. @throws Failure RESOURCE_IN_USE saying `why` */
export async function refuseWhileUsed<Result>(
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
