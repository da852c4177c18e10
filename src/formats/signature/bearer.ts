import { z } from 'zod'
import { parsing } from '../format.ts'
import { isSame } from './encoding.ts'
import { compileSecret, sharedSecret } from './secret.ts'
import type { Delivery, SignatureFormat } from './signature.ts'
import { type Found, found, GENUINE, refused } from './verdict.ts'

const config = z.strictObject({ token: sharedSecret })

const SCHEME = /^bearer +(\S+) *$/i

/** `bearer`: a fixed token in the Authorization header. */
export const bearer: SignatureFormat = {
  format: 'bearer',
  summary: 'A fixed bearer token.',
  config,
  compile: parsing(config, (keys) => {
    const readToken = compileSecret(keys.token, 'utf8')
    return async (delivery, scope) => {
      const token = readToken(scope)
      if (token.kind === 'refused') return token
      const sent = bearerToken(delivery)
      if (sent.kind === 'refused') return sent
      return isSame(token.value, sent.value) ? GENUINE : refused('the token does not match')
    }
  }),
}

/** The token of an `Authorization: Bearer …` header. */
export function bearerToken({ headers }: Delivery): Found<string> {
  const [, token] = SCHEME.exec(headers.authorization ?? '') ?? []
  return token === undefined ? refused('the Authorization header holds no bearer token') : found(token)
}
