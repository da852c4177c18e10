import { z } from 'zod'
import { type AuthorizationFormat, NO_AUTHORIZATION } from './authorization.ts'

/** `none`: says in writing that the API needs no credential. */
export const none: AuthorizationFormat = {
  format: 'none',
  summary: 'Sends no credential. The same as `authorization: null` on a method.',
  config: z.strictObject({}).optional(),
  compile: () => () => NO_AUTHORIZATION,
}
