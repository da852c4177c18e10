import { Failure } from '../../base/index.ts'
import type { Call } from '../call.ts'

/** The value of `Allow`: HEAD goes where GET goes, OPTIONS everywhere (RFC 9110, 10.2.1). */
export function allowHeader(verbs: readonly string[]): string {
  return [...new Set([...verbs, ...(verbs.includes('GET') ? ['HEAD'] : []), 'OPTIONS'])].sort().join(', ')
}

/** Refuses the verb of a request, with those that would do in the message and in the header `Allow`. */
export function methodNotAllowed(call: Pick<Call, 'setHeader'>, verbs: readonly string[], detail = ''): Failure {
  call.setHeader('allow', allowHeader(verbs))
  return new Failure('METHOD_NOT_ALLOWED', `this path takes ${verbs.join(', ')}${detail}`)
}
