import { z } from 'zod'
import { compileJson, compileTemplate, renderObject, renderText } from '../../expressions/template.ts'
import { withSchema } from '../format.ts'
import { secretText, templateMap, templateText } from '../schema-types.ts'
import { JWT_ALGORITHMS, signJwt } from '../sign-jwt.ts'
import type { AuthorizationFormat } from './authorization.ts'

const config = z.strictObject({
  algorithm: z.enum(JWT_ALGORITHMS).describe('Algorithm of the signature (RFC 7518).'),
  key: secretText().describe('The shared secret for HS algorithms, else a private key in PEM.'),
  claims: templateMap().default({}).describe('Claims; `iat` and `exp` are added unless they are given.'),
  expires_in: z.int().min(1).max(86_400).default(300).describe('Lifetime in seconds.'),
  key_id: templateText().optional().describe('`kid` in the header of the token.'),
})

/** `jwt`: a token signed per request and sent as bearer (RFC 7519). */
export const jwt: AuthorizationFormat = {
  format: 'jwt',
  summary: 'Signs a short-lived JWT for each request and sends it as `Authorization: Bearer …`.',
  config,
  compile: withSchema(config, (parsed) => {
    const key = compileTemplate(parsed.key)
    const claims = compileJson(parsed.claims)
    const keyId = parsed.key_id === undefined ? undefined : compileTemplate(parsed.key_id)
    return async (_request, scope, { now }) => {
      const issuedAt = Math.floor(now().getTime() / 1000)
      const token = await signJwt({
        algorithm: parsed.algorithm,
        key: renderText(key, scope),
        keyId: keyId === undefined ? undefined : renderText(keyId, scope),
        claims: { iat: issuedAt, exp: issuedAt + parsed.expires_in, ...renderObject(claims, scope) },
      })
      return { headers: { authorization: `Bearer ${token}` }, query: {} }
    }
  }),
}
