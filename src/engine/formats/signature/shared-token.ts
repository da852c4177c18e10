import { z } from 'zod'
import { compileTemplate } from '../../expressions/template.ts'
import { withSchema } from '../format.ts'
import { secretText, templateText } from '../schema-types.ts'
import { itemsKey, verifyItems } from './items.ts'
import { compileSecret, constantTimeEqual, decodeExactly, renderSetting, sharedSecret } from './secret.ts'
import type { SignatureFormat } from './signature.ts'
import { compileSource, readText, tokenText } from './source.ts'
import { invalid, ok, type Result, VALID, type WebhookRequest } from './verification.ts'

const basicConfig = z.strictObject({
  username: templateText().describe('User name.'),
  password: secretText().describe('Password; an empty one rejects every request.'),
})

const BASIC_SCHEME = /^basic +(\S+) *$/i

/** `basic`: user name and password in the Authorization header (RFC 7617). */
export const basic: SignatureFormat = {
  format: 'basic',
  summary: 'HTTP Basic credentials.',
  config: basicConfig,
  compile: withSchema(basicConfig, (keys) => {
    const username = compileTemplate(keys.username)
    const password = compileTemplate(keys.password)
    return async ({ headers }, scope) => {
      const user = renderSetting(username, scope, 'the user name')
      if (user.kind === 'invalid') return user
      const secret = renderSetting(password, scope, 'the password')
      if (secret.kind === 'invalid') return secret
      const [, encoded = ''] = BASIC_SCHEME.exec(headers.authorization ?? '') ?? []
      const sent = decodeExactly(encoded, 'base64')
      if (encoded === '' || sent === undefined) return invalid('the Authorization header holds no basic credentials')
      const isMatch = constantTimeEqual(sent, Buffer.from(`${user.value}:${secret.value}`))
      return isMatch ? VALID : invalid('the user name or password does not match')
    }
  }),
}

const bearerConfig = z.strictObject({ token: sharedSecret })

const BEARER_SCHEME = /^bearer +(\S+) *$/i

/** `bearer`: a fixed token in the Authorization header. */
export const bearer: SignatureFormat = {
  format: 'bearer',
  summary: 'A fixed bearer token.',
  config: bearerConfig,
  compile: withSchema(bearerConfig, (keys) => {
    const readToken = compileSecret(keys.token, 'utf8')
    return async (request, scope) => {
      const token = readToken(scope)
      if (token.kind === 'invalid') return token
      const sent = bearerToken(request)
      if (sent.kind === 'invalid') return sent
      return constantTimeEqual(token.value, sent.value) ? VALID : invalid('the token does not match')
    }
  }),
}

/** The token of an `Authorization: Bearer …` header. */
export function bearerToken({ headers }: WebhookRequest): Result<string> {
  const [, token] = BEARER_SCHEME.exec(headers.authorization ?? '') ?? []
  return token === undefined ? invalid('the Authorization header holds no bearer token') : ok(token)
}

const compareConfig = z.strictObject({
  compare_with: tokenText().describe('Where the secret is sent, for example `$header.x-token`.'),
  secret: sharedSecret,
  items: itemsKey,
})

/** `compare`: a value of the request equals a secret. */
export const compare: SignatureFormat = {
  format: 'compare',
  summary: 'A header, parameter or body value that equals the secret.',
  config: compareConfig,
  compile: withSchema(compareConfig, (keys) => {
    const readSecret = compileSecret(keys.secret, 'utf8')
    const source = compileSource(keys.compare_with)
    return verifyItems(keys.items, async (request, scope) => {
      const secret = readSecret(scope)
      if (secret.kind === 'invalid') return secret
      const sent = readText(source, request, scope)
      if (sent.kind === 'invalid') return sent
      return constantTimeEqual(secret.value, sent.value) ? VALID : invalid('the secret does not match')
    })
  }),
}

/** `none`: states explicitly that requests are not verified. */
export const none: SignatureFormat = {
  format: 'none',
  summary: 'Requests are accepted unverified; has to be written out.',
  config: z.strictObject({}).optional(),
  compile: () => async () => VALID,
}
