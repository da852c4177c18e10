import { z } from 'zod'
import { withSchema } from '../format.ts'
import { constantTimeEqual } from './encoding.ts'
import { compileSecret, sharedSecret } from './secret.ts'
import type { SignatureFormat } from './signature.ts'
import { compileSource, readText, tokenText } from './source.ts'
import { invalid, VALID } from './verdict.ts'

const compareConfig = z.strictObject({
  compare_with: tokenText().describe('Where the secret is sent, for example `$header.x-token`.'),
  secret: sharedSecret,
})

/** `compare`: a value of the delivery equals a secret. */
export const compare: SignatureFormat = {
  format: 'compare',
  summary: 'A header, parameter or body value that equals the secret.',
  config: compareConfig,
  compile: withSchema(compareConfig, (keys) => {
    const readSecret = compileSecret(keys.secret, 'utf8')
    const source = compileSource(keys.compare_with)
    return async (delivery, scope) => {
      const secret = readSecret(scope)
      if (secret.kind === 'refused') return secret
      const sent = readText(source, delivery, scope)
      if (sent.kind === 'refused') return sent
      return constantTimeEqual(secret.value, sent.value) ? VALID : invalid('the secret does not match')
    }
  }),
}
