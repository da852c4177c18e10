import { z } from 'zod'
import { listOf, mapOf, nameText, plainText, rawText, refineWith } from '../schema-types.ts'
import { findPatternProblem, PATTERN_LENGTH_MAX } from './field-pattern.ts'

/** Standard parameters of an authorisation address. */
const AUTHORIZE_PARAMETERS = [
  'client_id',
  'redirect_uri',
  'response_type',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
] as const

/** `authorize`: deviations of an authorisation address and of the redirect that follows. */
export const authorize = z
  .strictObject({
    parameter_names: mapOf(z.enum(AUTHORIZE_PARAMETERS), nameText())
      .optional()
      .describe('Other names of standard parameters, for example {"client_id": "client_key"}.'),
    omit: listOf(z.enum(['client_id', 'redirect_uri', 'response_type', 'scope', 'code_challenge_method']))
      .optional()
      .describe('Parameters that are not sent.'),
    raw: listOf(nameText())
      .optional()
      .describe('Parameters whose values are sent as they are, not percent-encoded, by the names that are sent.'),
    fragment: plainText().optional().describe('Fragment of the address, after `#`.'),
    code_parameter: nameText().optional().describe('Where the redirect brings the code. Default: code.'),
    decode_code: z
      .boolean()
      .optional()
      .describe('Whether the code is percent-encoded once more than the redirect needs. Default: false.'),
    pending_when: mapOf(nameText(), rawText())
      .optional()
      .describe(
        'Parameters of a redirect without a token because another person has to confirm, for example {"setup_action": "request"}.',
      ),
  })
  .optional()
  .describe('Where an authorisation address or its redirect departs from the standard.')

const redirectParameter = z.strictObject({
  parameter: nameText().describe('Name in the redirect.'),
  pattern: z
    .string()
    .max(PATTERN_LENGTH_MAX, { abort: true })
    .superRefine(refineWith(findPatternProblem, 'field.pattern'))
    .describe('Regular expression that the whole value must match, in RE2 syntax.'),
})

/** `context_from_redirect`. */
export const contextFromRedirect = {
  context_from_redirect: mapOf(nameText(), z.union([nameText(), redirectParameter]))
    .optional()
    .describe(
      'Context keys filled from parameters of the redirect, given as the name or as {parameter, pattern}. A parameter that becomes part of a host needs a pattern: the customer can change the redirect.',
    ),
} as const
