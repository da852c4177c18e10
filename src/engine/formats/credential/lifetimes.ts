import { z } from 'zod'
import { compileTemplate, listPlaceholderPaths, renderText } from '../../expressions/template.ts'
import { refineWith, templateText } from '../schema-types.ts'
import type { Lifetimes } from './credential.ts'

const DAYS_MAX = 3_650

/** `lifetimes`: ends of tokens and client that no response of the third party tells. */
export const lifetimes = z
  .strictObject({
    refresh_token_idle_days: z
      .int()
      .min(1)
      .max(DAYS_MAX)
      .optional()
      .describe('A refresh token that is not used for so many days is invalid. It is used before that.'),
    refresh_token_max_days: z
      .int()
      .min(1)
      .max(DAYS_MAX)
      .optional()
      .describe('The customer has to consent again after so many days. An event asks for it in advance.'),
    client_secret_expires_at: templateText()
      .superRefine(refineWith(findDateProblem, 'date'))
      .optional()
      .describe(
        "When the secret of the integration's client ends, for example 2027-03-01; usually given by the environment's override.",
      ),
  })
  .optional()
  .describe('Ends of tokens and client that no response names.')

/** Compiles `lifetimes`. */
export function compileLifetimes(
  setting: z.output<typeof lifetimes>,
): { readonly lifetimes: Lifetimes } | Record<string, never> {
  if (setting === undefined) return {}
  const text = setting.client_secret_expires_at
  const template = text === undefined ? undefined : compileTemplate(text)
  return {
    lifetimes: {
      refreshTokenIdleDays: setting.refresh_token_idle_days,
      refreshTokenMaxDays: setting.refresh_token_max_days,
      clientSecretExpiresAt: (scope) => (template === undefined ? undefined : parseDate(renderText(template, scope))),
    },
  }
}

/** A date or a moment of RFC 3339; `undefined` for anything else. */
function parseDate(text: string): Date | undefined {
  const time = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]{5,18}(?:Z|[+-]\d{2}:\d{2}))?$/.test(text.trim()) ? Date.parse(text) : NaN
  return Number.isNaN(time) ? undefined : new Date(time)
}

function findDateProblem(text: string): string | undefined {
  if (listPlaceholderPaths(text).length > 0 || parseDate(text) !== undefined) return undefined
  return 'must be a date such as 2027-03-01, a moment such as 2027-03-01T00:00:00Z, or a placeholder'
}
