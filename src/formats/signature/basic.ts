import { z } from 'zod'
import { compileTemplate } from '../../expression/index.ts'
import { withSchema } from '../format.ts'
import { secretText, templateText } from '../vocabulary.ts'
import { constantTimeEqual, decodeExactly } from './encoding.ts'
import { renderSetting } from './secret.ts'
import type { SignatureFormat } from './signature.ts'
import { invalid, VALID } from './verdict.ts'

const basicConfig = z.strictObject({
  username: templateText().describe('User name.'),
  password: secretText().describe('Password; an empty one refuses every delivery.'),
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
      if (user.kind === 'refused') return user
      const secret = renderSetting(password, scope, 'the password')
      if (secret.kind === 'refused') return secret
      const [, encoded = ''] = BASIC_SCHEME.exec(headers.authorization ?? '') ?? []
      const sent = decodeExactly(encoded, 'base64')
      if (encoded === '' || sent === undefined) return invalid('the Authorization header holds no basic credentials')
      const isMatch = constantTimeEqual(sent, Buffer.from(`${user.value}:${secret.value}`))
      return isMatch ? VALID : invalid('the user name or password does not match')
    }
  }),
}
