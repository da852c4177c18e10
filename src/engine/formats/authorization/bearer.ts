import { z } from 'zod'
import { compileTemplate, renderText } from '../../expressions/template.ts'
import { withSchema } from '../format.ts'
import { secretText } from '../schema-types.ts'
import type { AuthorizationFormat } from './authorization.ts'

/** The access token of an OAuth account, else the collected field `api_key`. */
const ACCOUNT_TOKEN = '{{oauth.token.access_token|api_key}}'

const config = z
  .strictObject({
    token: secretText()
      .default(ACCOUNT_TOKEN)
      .describe("The token. Default: the account's access token, else its `api_key`."),
  })
  .prefault({})

/** `bearer`: RFC 6750. */
export const bearer: AuthorizationFormat = {
  format: 'bearer',
  summary: 'Sends `Authorization: Bearer <token>`.',
  config,
  compile: withSchema(config, ({ token }) => {
    const template = compileTemplate(`Bearer ${token}`)
    return (_request, scope) => ({ headers: { authorization: renderText(template, scope) }, query: {} })
  }),
}
