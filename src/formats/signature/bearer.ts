import { z } from 'zod'
import { withSchema } from '../format.ts'
import { constantTimeEqual } from './encoding.ts'
import { compileSecret, sharedSecret } from './secret.ts'
import type { InboundDelivery, SignatureFormat } from './signature.ts'
import { invalid, ok, type Result, VALID } from './verdict.ts'

const bearerConfig = z.strictObject({ token: sharedSecret })

const BEARER_SCHEME = /^bearer +(\S+) *$/i

/** `bearer`: a fixed token in the Authorization header. */
export const bearer: SignatureFormat = {
  format: 'bearer',
  summary: 'A fixed bearer token.',
  config: bearerConfig,
  compile: withSchema(bearerConfig, (keys) => {
    const readToken = compileSecret(keys.token, 'utf8')
    return async (delivery, scope) => {
      const token = readToken(scope)
      if (token.kind === 'refused') return token
      const sent = bearerToken(delivery)
      if (sent.kind === 'refused') return sent
      return constantTimeEqual(token.value, sent.value) ? VALID : invalid('the token does not match')
    }
  }),
}

/** The token of an `Authorization: Bearer …` header. */
export function bearerToken({ headers }: InboundDelivery): Result<string> {
  const [, token] = BEARER_SCHEME.exec(headers.authorization ?? '') ?? []
  return token === undefined ? invalid('the Authorization header holds no bearer token') : ok(token)
}
