import { z } from 'zod'
import { type DotPath, parseDotPath } from '../../../foundation/json/index.ts'
import { type RequestDefinition, requestSchema } from '../request-keys.ts'
import { fieldPath, mapOf, nameText } from '../schema-types.ts'
import type { Identity } from './credential.ts'

/** Root names of expressions over token responses: the last one as `response` and its members, all of them as `steps`. */
export const TOKEN_ROOTS = [
  'response',
  'status',
  'headers',
  'cookies',
  'body',
  'steps',
  'credentials',
  'context',
] as const

/** Settings of all credential formats. */
export const connectionKeys = {
  verification: requestSchema
    .optional()
    .describe(
      'A request that must succeed before the account counts as connected: it needs a status 2xx, also after redirects, that `error_expression` takes for no error, and no web page. A 202, 429 or 5xx, or no answer, is tried again; anything else fails the account.',
    ),
  identity: z
    .strictObject({
      request: requestSchema
        .optional()
        .describe('A request whose response names the account. Default: the response of the token endpoint.'),
      path: fieldPath().optional().describe('Where the response holds the id: a text or a number.'),
      context: nameText()
        .optional()
        .describe(
          'Instead of path: a key of the context that the redirect, `post_install` or the choice of the customer fills, such as the company of a grant over several.',
        ),
    })
    .refine((value) => (value.path === undefined) !== (value.context === undefined), {
      message: 'needs either path or context',
      params: { rule: 'identity.source' },
    })
    .refine((value) => value.context === undefined || value.request === undefined, {
      message: 'has a request, which needs a path',
      params: { rule: 'identity.source' },
    })
    .optional()
    .describe(
      "The id of the customer's account at the third party. Reconnecting with another one needs the customer's confirmation.",
    ),
} as const

/** `context_from_token`, a setting of all formats with a token response. */
export const contextFromToken = {
  context_from_token: mapOf(nameText(), fieldPath())
    .optional()
    .describe('Context keys filled from the token answer. Texts, numbers and booleans only, and never a token.'),
} as const

/** The mapping with its paths parsed. */
export function contextPaths(
  mapping: Readonly<Record<string, string>> | undefined,
): readonly (readonly [string, DotPath])[] {
  return Object.entries(mapping ?? {}).map(([key, path]) => [key, parseDotPath(path)] as const)
}

interface IdentitySetting {
  readonly request?: RequestDefinition | undefined
  readonly path?: string | undefined
  readonly context?: string | undefined
}

/** `verification` and `identity` of a plan. */
export function connectionOf({
  verification,
  identity,
}: {
  readonly verification?: RequestDefinition | undefined
  readonly identity?: IdentitySetting | undefined
}): { readonly verification: RequestDefinition | undefined; readonly identity?: Identity<RequestDefinition> } {
  if (identity === undefined) return { verification }
  const { request, path = '', context } = identity
  return {
    verification,
    identity:
      context === undefined
        ? { kind: 'response', request, path: parseDotPath(path) }
        : { kind: 'context', key: context },
  }
}
