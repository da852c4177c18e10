import { z } from 'zod'
import { secretText, templateText } from '../vocabulary.ts'
import type { SignatureFormat } from './signature.ts'

/** `basic`: user name and password in the Authorization header. */
export const basic: SignatureFormat = {
  format: 'basic',
  summary: 'HTTP Basic credentials.',
  config: z.strictObject({
    username: templateText().describe('User name.'),
    password: secretText().describe('Password.'),
  }),
  readiness: 'announced',
}
