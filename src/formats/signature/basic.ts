import { z } from 'zod'
import { compileTemplate } from '../../expression/index.ts'
import { parsing } from '../format.ts'
import { secretText, templateText } from '../vocabulary.ts'
import { decodeExactly, isSame } from './encoding.ts'
import { renderSetting } from './secret.ts'
import type { SignatureFormat } from './signature.ts'
import { GENUINE, refused } from './verdict.ts'

const config = z.strictObject({
  username: templateText().describe('User name.'),
  password: secretText().describe('Password; an empty one refuses every delivery.'),
})

const SCHEME = /^basic +(\S+) *$/i

/** `basic`: user name and password in the Authorization header (RFC 7617). */
export const basic: SignatureFormat = {
  format: 'basic',
  summary: 'HTTP Basic credentials.',
  config,
  compile: parsing(config, (keys) => {
    const username = compileTemplate(keys.username)
    const password = compileTemplate(keys.password)
    return async ({ headers }, scope) => {
      const user = renderSetting(username, scope, 'the user name')
      if (user.kind === 'refused') return user
      const secret = renderSetting(password, scope, 'the password')
      if (secret.kind === 'refused') return secret
      const [, encoded = ''] = SCHEME.exec(headers.authorization ?? '') ?? []
      const sent = decodeExactly(encoded, 'base64')
      if (encoded === '' || sent === undefined) return refused('the Authorization header holds no basic credentials')
      const isMatch = isSame(sent, Buffer.from(`${user.value}:${secret.value}`))
      return isMatch ? GENUINE : refused('the user name or password does not match')
    }
  }),
}
