import { type DotPath, parseDotPath } from '../../base/index.ts'
import { requestSchema } from '../request-keys.ts'
import { fieldPath, mapOf, nameText } from '../vocabulary.ts'

/** What expressions over token answers see: the last one as `response` and bare, and all of them as `steps`. */
export const TOKEN_ROOTS = ['response', 'status', 'headers', 'body', 'steps', 'credentials', 'context'] as const

/** `verification`, which every format of credentials offers. */
export const verification = {
  verification: requestSchema
    .optional()
    .describe('A request that must succeed before the account counts as connected.'),
} as const

/** `context_from_token`, which every format with a token answer offers. */
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
