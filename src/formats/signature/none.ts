import { z } from 'zod'
import type { SignatureFormat } from './signature.ts'
import { VALID } from './verdict.ts'

/** `none`: says in writing that deliveries are not verified. */
export const none: SignatureFormat = {
  format: 'none',
  summary: 'Deliveries are accepted unverified; has to be written out.',
  config: z.strictObject({}).optional(),
  compile: () => async () => VALID,
}
