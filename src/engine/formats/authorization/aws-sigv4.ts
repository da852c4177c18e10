import { z } from 'zod'
import { compileTemplate, renderText } from '../../expressions/template.ts'
import { withSchema } from '../format.ts'
import { secretText, templateText } from '../schema-types.ts'
import type { AuthorizationFormat } from './authorization.ts'
import { signAwsRequest } from './aws-signature.ts'

const config = z.strictObject({
  access_key_id: templateText().describe('Identifies the key.'),
  secret_access_key: secretText().describe('Signs; never sent.'),
  session_token: secretText().optional().describe('Sent as `X-Amz-Security-Token`, for temporary credentials.'),
  region: templateText().describe('For example `eu-central-1`.'),
  service: templateText().describe('For example `s3` or `execute-api`.'),
})

/** `aws_sigv4`: Signature Version 4 in the Authorization header, computed by the SDK's own signer. */
export const awsSigv4: AuthorizationFormat = {
  format: 'aws_sigv4',
  summary:
    'Signs the request with AWS Signature Version 4; the caller of a streamed body names its hash, or `UNSIGNED-PAYLOAD`, in `x-amz-content-sha256`.',
  config,
  compile: withSchema(config, (parsed) => {
    const accessKeyId = compileTemplate(parsed.access_key_id)
    const secretAccessKey = compileTemplate(parsed.secret_access_key)
    const region = compileTemplate(parsed.region)
    const service = compileTemplate(parsed.service)
    const sessionToken = parsed.session_token === undefined ? undefined : compileTemplate(parsed.session_token)
    return async (request, scope, { now }) => {
      const key = {
        accessKeyId: renderText(accessKeyId, scope),
        secretAccessKey: renderText(secretAccessKey, scope),
        sessionToken: sessionToken === undefined ? undefined : renderText(sessionToken, scope),
        region: renderText(region, scope),
        service: renderText(service, scope),
      }
      const headers = await signAwsRequest(request, key, now())
      return { headers, query: {} }
    }
  }),
}
