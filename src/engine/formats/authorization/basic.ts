import { z } from 'zod'
import { compileTemplate, renderText } from '../../expressions/template.ts'
import { withSchema } from '../format.ts'
import { secretText, templateText } from '../schema-types.ts'
import type { AuthorizationFormat } from './authorization.ts'

const config = z.strictObject({
  username: templateText().describe('The user name; may be empty, must not hold a colon.'),
  password: secretText()
    .default('')
    .describe('The password. Default: empty, as APIs want it that take a key as the user name.'),
})

/** `basic`: RFC 7617, the text encoded as UTF-8. */
export const basic: AuthorizationFormat = {
  format: 'basic',
  summary: 'Sends `Authorization: Basic <base64 of username:password>`.',
  config,
  compile: withSchema(config, ({ username, password }) => {
    const user = compileTemplate(username)
    const secret = compileTemplate(password)
    return (_request, scope) => {
      const pair = `${renderText(user, scope)}:${renderText(secret, scope)}`
      return { headers: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` }, query: {} }
    }
  }),
}
