import { z } from 'zod'
import { mustBeOneOf } from '../../foundation/base/index.ts'
import { bodyFormatSchema } from './body/registry.ts'
import { QUERY_ARRAY_FORMATS } from './query-string.ts'
import { responseFormatSchema } from './response/registry.ts'
import { headerMap, jsonTemplate, refineWith, templateMap, templateText, urlText } from './schema-types.ts'

/** RFC 9110, PATCH, QUERY, and those of WebDAV, CalDAV and CardDAV (RFC 4918, 3253, 4791, 5323). */
const VERBS = [
  ...['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'QUERY'],
  ...['PROPFIND', 'PROPPATCH', 'MKCOL', 'MKCALENDAR', 'COPY', 'MOVE', 'LOCK', 'UNLOCK', 'REPORT', 'SEARCH', 'ACL'],
]

/** Serialisation of lists in query parameters. */
export const queryArrayFormatSchema = z
  .enum(QUERY_ARRAY_FORMATS)
  .describe(
    'How a list is written: comma a=1,2 · brackets a[]=1&a[]=2 · indices a[0]=1&a[1]=2 · repeat a=1&a=2 (default).',
  )

/** The settings that all outgoing requests share: resource methods, verification requests, action and token steps. */
export const requestKeys = {
  method: z
    .string()
    .max(16)
    .superRefine(refineWith(findVerbProblem, 'method.verb'))
    .default('GET')
    .describe('HTTP method in any case, those of WebDAV included. Default: GET.'),
  path: templateText()
    .default('')
    .describe('Appended to the base address; values of placeholders are percent-encoded.'),
  base_url: urlText().optional().describe("Base address of this request instead of the integration's."),
  headers: headerMap().optional().describe("Over the integration's headers; `null` removes one."),
  query: templateMap().optional().describe("Over the integration's query parameters; `null` removes one."),
  query_array_format: queryArrayFormatSchema.optional(),
  body: jsonTemplate().optional().describe('Body template. A body that the caller sends is merged over it.'),
  body_format: bodyFormatSchema.optional().describe('How the body is written. Default: json.'),
  response_format: responseFormatSchema
    .optional()
    .describe(
      'How the answer is read: the name of a format, or `{format, config}`. Default: by its content type, JSON above all.',
    ),
  allow_empty_body: z
    .boolean()
    .optional()
    .describe(
      'An answer of status 200 without a body means that there is nothing. Default: a list or result that is announced as JSON or XML, or a list without a type, is incomplete then; 204, 205 and 304 have no body, and CSV, NDJSON and text may be empty.',
    ),
  allow_accepted: z
    .boolean()
    .optional()
    .describe(
      'Status 202 is a success. Default: only of what writes; whatever reads asks again until the result is there, and waits as long as Retry-After says.',
    ),
} as const

/** A request without extraction or paging. */
export const requestSchema = z.strictObject(requestKeys).meta({ id: 'Request' })

export type RequestDefinition = z.output<typeof requestSchema>

function findVerbProblem(verb: string): string | undefined {
  return VERBS.includes(verb.toUpperCase()) ? undefined : mustBeOneOf(verb, VERBS)
}
